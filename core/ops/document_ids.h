#pragma once
#include "core/op.h"

namespace tally::ops {

// The document that each token of a sequence belongs to, from the token that ends one: what
// attention takes as `documents`, so that tokens of texts that were packed into one sequence do not
// see each other (Raffel et al. 2019, arXiv:1910.10683; Llama 3, arXiv:2407.21783, section 3.2).
//
//   documents[b,t] = number of ends among ids[b,0], ..., ids[b,t-1]
//
//   ids, documents (B,T) i64
//
// An end belongs to the document that it ends. Integers alone: no gradient, no operation is counted.
struct DocumentIds {
  static constexpr const char* name = "document_ids";
  struct Attrs {
    int64_t end = 0;
    DType element = DType::f32;  // type of the model, whose loops count
  };
  struct Saved {};

  struct Call {
    static constexpr const char* name = "document_ids";
    static constexpr Kind kind = Kind::movement;
    In ids;
    Out documents;
    Attrs attrs;
    static constexpr const char* formula = "documents[b,t] = number of ends before t";
    static constexpr const char* operands = "ids, documents";
    auto views() const { return std::tie(ids, documents); }
    DType dtype() const { return attrs.element; }
    Cost cost() const { return reads(ids) + writes(documents); }
    template <class T>
    void reference() const {
      for (int64_t b = 0; b < ids.rows(); ++b) {
        int64_t document = 0;
        for (int64_t t = 0; t < ids.cols(); ++t) {
          documents.put_index<T>(b * documents.row_stride + t, document);
          document += ids.index<T>(b * ids.row_stride + t) == attrs.end ? 1 : 0;
        }
      }
    }
  };

  static Tensor forward(const Tensor& ids, const Attrs& a, Saved*) {
    check_defined(name, "ids", ids);
    check(ids.dtype() == DType::i64 && ids.ndim() == 2,
          "document_ids: ids must be (B,T) of i64; got ", ids.shape(), " of ", ids.dtype(),
          in_module());
    Tensor documents = empty(ids.shape(), DType::i64, ids.device());
    run(ids.device(), Call{ids, documents, a});
    return documents;
  }
};

}  // namespace tally::ops
