#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/token_file.h"
#include "data/tokenizer.h"

namespace tally {

/// Where one document of a text ends and the next begins.
enum class DocumentRule : uint8_t {
  empty_line,  ///< at one or more empty lines (\n or \r\n), which belong to neither
  whole_file,  ///< each file is one document
};

/// What is held out for validation.
enum class SplitRule : uint8_t {
  documents,  ///< every n-th document, n = round(1 / fraction), counted from 1 through all files
  tail,       ///< the last `fraction` of each file's bytes, cut between two characters
};

/// "empty-line" or "whole-file"; "documents" or "tail". Throw Error for another name.
DocumentRule document_rule_by_name(const std::string& name);
SplitRule split_rule_by_name(const std::string& name);

struct TextOptions {
  DocumentRule documents = DocumentRule::empty_line;
  SplitRule split = SplitRule::documents;
  double val_fraction = 0;  ///< 0: nothing is held out; at most 0.5
};

/// Calls `use(document, held_out)` for every document of the files in order. Documents keep the end
/// of their last line; empty ones are left out. Files may hold any bytes. Throws Error for no
/// files, one that cannot be read or is empty, a fraction out of range, or if nothing or everything
/// is held out although the fraction is not 0.
using UseDocument = std::function<void(std::string_view document, bool held_out)>;
void for_each_document(const std::vector<std::string>& files, const TextOptions& options,
                       const UseDocument& use);

/// Tokens for training and, if something is held out, for validation.
struct TokenSplits {
  TokenFile train;
  std::optional<TokenFile> val;
};

/// Text files to tokens in memory: document after document, each followed by the tokenizer's
/// end-of-text token. A tokenizer without one gets an empty line (a line end) instead.
TokenSplits tokenize_files(const std::vector<std::string>& files, const Tokenizer& tokenizer,
                           const TextOptions& options = {});

/// `tally data prepare`: what tokenize_files gives, written into `folder` (which is made if need be) as
/// train.npy (and val.npy), each with its JSON. Only the tokens of one document are in memory.
/// `progress` hears after each how many bytes of text are done. Returns what was written, mapped.
TokenSplits prepare_data(const std::vector<std::string>& files, const Tokenizer& tokenizer,
                         const std::string& folder, const TextOptions& options = {},
                         std::optional<TokenWidth> width = {},
                         const std::function<void(int64_t bytes)>& progress = {});

struct DataOptions {
  TextOptions text;
  std::optional<TokenWidth> width = {};  ///< of raw .bin files
};

/// What `--data PATH`, once or more, of training and evaluation means (data/data_files.h): token
/// files, mapped and read as one; or texts, tokenized in memory. Of token files `val_fraction` is held
/// out at the end, from the last end-of-text token before, unless a folder has files for that.
/// Throws Error as the functions above; a token file made with another tokenizer is refused.
TokenSplits open_data(const std::vector<std::string>& paths, const Tokenizer& tokenizer,
                      const DataOptions& options = {});
TokenSplits open_data(const std::string& path, const Tokenizer& tokenizer,
                      const DataOptions& options = {});

}  // namespace tally
