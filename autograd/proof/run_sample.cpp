#include "autograd/proof/run_sample.h"

#include "autograd/proof/proof_kernels.h"

namespace tally {
namespace {

template <class T>
double as_double(const T& x) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return static_cast<double>(static_cast<float>(x));
  else
    return static_cast<double>(x);
}

// A view of host memory that holds the same elements.
struct OnHost {
  explicit OnHost(const Tensor& t) : view(t) {
    check(!backend(t.device()).is_meta(), "to_doubles: a tensor on meta has a shape and no values");
    if (backend(t.device()).host_memory() || t.numel() == 0) return;
    check(t.is_contiguous(), "to_doubles: a tensor on ", t.device(),
          " must be contiguous; call contiguous(x) first");
    bytes.resize(t.nbytes());
    backend(t.device()).copy_to_host(bytes.data(), t.data(), bytes.size());
    view.data = bytes.data();
  }
  View view;
  std::vector<std::byte> bytes;
};

}  // namespace

std::vector<Tensor> make_inputs(const Sample& s, DType dtype, Device device) {
  std::vector<Tensor> in;
  for (const SampleInput& i : s.inputs) in.push_back(make_input(i, dtype, device));
  return in;
}

Tensor random_like(const Tensor& t, uint64_t seed) {
  if (!is_floating(t.dtype())) return {};
  return make_input(normal(t.shape(), seed), t.dtype(), t.device());
}

std::vector<Tensor> random_upstream(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> dy;
  for (size_t i = 0; i < outputs.size(); ++i) dy.push_back(random_like(outputs[i], 100 + i));
  return dy;
}

std::vector<double> to_doubles(const Tensor& t) {
  std::vector<double> out;
  const OnHost host(t);
  const auto take = [&]<class T>(std::type_identity<T>) {
    detail::each_element<T>(host.view, [&](const T& x) { out.push_back(as_double(x)); });
  };
  switch (t.dtype()) {
    case DType::f32:
      take(std::type_identity<float>{});
      break;
    case DType::f64:
      take(std::type_identity<double>{});
      break;
    case DType::bf16:
      take(std::type_identity<bf16>{});
      break;
    case DType::f16:
      take(std::type_identity<f16>{});
      break;
    case DType::i64:
      take(std::type_identity<int64_t>{});
      break;
    case DType::u8:
      take(std::type_identity<uint8_t>{});
      break;
    case DType::dual:
      take(std::type_identity<Dual>{});
      break;
    case DType::rounded:
      take(std::type_identity<Rounded>{});
      break;
    case DType::rounded_half:
      take(std::type_identity<RoundedHalf>{});
      break;
    default:
      fail("to_doubles: not for ", t.dtype());
  }
  return out;
}

SampleRun run_sample(const Sample& s, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& upstream) {
  SampleRun run;
  if (!s.by_hand) {
    run.outputs = s.apply(inputs);
    run.gradients.resize(inputs.size());
    return run;
  }
  const Sample::Explicit e = s.by_hand(inputs);
  run.outputs = e.outputs;
  run.upstream = upstream.empty() ? random_upstream(run.outputs) : upstream;
  run.gradients = e.backward(run.upstream);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!s.inputs[i].differentiable) run.gradients[i] = Tensor();
  }
  return run;
}

}  // namespace tally
