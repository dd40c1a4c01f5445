#include "models/batch_rows.h"

namespace tally {

BatchRows::BatchRows(const Objective& o, int64_t n)
    : rows(n),
      ids(static_cast<size_t>(n * o.length())),
      targets(ids.size()),
      source(static_cast<size_t>(n * o.source())),
      mask(o.masks_source() ? source.size() : 0) {}

nn::ModelBatch BatchRows::on(Device device) const {
  const auto put = [&]<class T>(const std::vector<T>& v) {
    const auto columns = static_cast<int64_t>(v.size()) / rows;
    return v.empty() ? Tensor() : from_host<T>(v, {rows, columns}, device);
  };
  return {put(ids), put(targets), put(source), put(mask)};
}

}  // namespace tally
