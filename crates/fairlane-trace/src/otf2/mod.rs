//! x
use std::path::Path;
use fairlane_core::program::Program;
use crate::{Options,description::Description, error::TraceError};
pub fn open(anchor:&Path, _o:&Options)->Result<Program,TraceError>{Err(TraceError::file(anchor,"x"))}
pub fn describe(anchor:&Path, _o:&Options)->Result<Description,TraceError>{Err(TraceError::file(anchor,"x"))}
