"""The papers that fairlane comes with: folders of ``paper.toml``, ``claims.toml``, ``figures.toml`` and study files."""
