#pragma once

namespace tally {

/// Shapes, costs and byte counts, without memory and without arithmetic: what a run would do.
void register_meta_backend();

}  // namespace tally
