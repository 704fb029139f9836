//! Everything that decides, generic over [`os::Os`].
pub mod os;
