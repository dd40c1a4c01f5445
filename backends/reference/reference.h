#pragma once

namespace tally {

/// The backend that defines what every other must equal: each call's own loops, one thread.
void register_reference_backend();

}  // namespace tally
