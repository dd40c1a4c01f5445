#include "backends/meta/meta.h"

#include "core/backend.h"
#include "core/error.h"

namespace tally {
namespace {

class MetaBackend final : public Backend {
 public:
  std::string_view name() const override { return "meta"; }
  void* allocate(size_t) override { return nullptr; }
  void release(void*, size_t) noexcept override {}
  void copy_from_host(void*, const void*, size_t) override {}
  void copy_to_host(void*, const void*, size_t) override {
    fail("meta: a tensor on meta has a shape and no values, so nothing can be copied from it");
  }
  void copy(void*, const void*, size_t) override {}
  void zero(void*, size_t) override {}
  bool is_meta() const override { return true; }
};

}  // namespace

void register_meta_backend() { register_backend(std::make_unique<MetaBackend>(), kMeta.kind); }

}  // namespace tally
