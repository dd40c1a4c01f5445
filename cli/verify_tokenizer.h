#pragma once
#include <string>
#include <vector>

namespace tally::cli {

/// What a file of recorded tokens gave.
struct TokenizerReport {
  int64_t cases = 0;
  std::vector<std::string> failed;  // names of cases
};

/// Replays a file of texts that another tokenizer cut, encoded, decoded or learnt from; what it is
/// is told by its members:
///   tokenizer, cases       ids of a public vocabulary, which `vocabulary` holds: a file, or a folder
///                          with one of that name (gpt2, gpt2.json, .tiktoken or .model)
///   tokenizer_file, cases  ids of a tokenizer.json beside the file
///   text_file, rules       merges learnt from a text beside the file, by rule of ties
///   patterns, cases        where patterns cut
/// Throws Error if the file is none of these or a file that it needs is missing.
TokenizerReport verify_tokenizer(const std::string& path, const std::string& vocabulary);

}  // namespace tally::cli
