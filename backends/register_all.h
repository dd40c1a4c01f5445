#pragma once

namespace tally {

/// Registers every backend of this build and its kernels. Call it once at the start of a program;
/// calling it again does nothing.
void register_all();

}  // namespace tally
