//! The compiled part of the Python package, with what is built in. `fairlane build` makes the same of plug-ins.

fairlane_bindings::extension!();
