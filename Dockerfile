# fairlane without Rust on the machine:
#   docker build -t fairlane .
#   docker run --rm -v "$PWD:/work" fairlane run examples/quickstart.toml --out runs/quickstart
# To have files belong to you rather than to user 1000, add: --user "$(id -u):$(id -g)"

ARG RUST=1.88
ARG PYTHON=3.13

# The wheel, and the versions of the libraries that requirements/lock.txt names.
FROM rust:${RUST}-slim-bookworm AS build
# Versions of Debian's packages are those of the base image's release.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-venv gcc libc6-dev make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN tools/check-toolchain \
    && grep -oE '^[A-Za-z0-9._-]+==[^ ;\\]+( *;[^\\]*)?' requirements/lock.txt > /versions.txt \
    && python3 -m venv /build \
    && /build/bin/pip install --no-cache-dir --constraint /versions.txt maturin \
    && /build/bin/maturin build --release --locked --compatibility linux --out /wheels

FROM python:${PYTHON}-slim-bookworm
COPY --from=build /wheels /versions.txt /tmp/install/
RUN pip install --no-cache-dir --constraint /tmp/install/versions.txt "$(ls /tmp/install/*.whl)[papers]" \
    && rm -rf /tmp/install \
    && useradd --create-home --uid 1000 fairlane \
    && mkdir -m 1777 /work /var/cache/fairlane
# Caches are in a folder that every user can write: docker run --user works.
ENV MPLBACKEND=Agg MPLCONFIGDIR=/var/cache/fairlane/matplotlib XDG_CACHE_HOME=/var/cache/fairlane
USER 1000
WORKDIR /work
RUN fairlane doctor && rm -rf /var/cache/fairlane/*
ENTRYPOINT ["fairlane"]
CMD ["--help"]
