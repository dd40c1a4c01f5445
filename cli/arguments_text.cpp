// The words of the verbs on text and tokens.
#include "cli/arguments.h"
#include "cli/checks.h"

namespace tally::cli {

void add_text(CLI::App& app, Options& o, Run& run) {
  CLI::App* t =
      add_verb(app, "tokenizer", "Train and use byte-level BPE tokenizers",
               "tally tokenizer train data/corpus/king_james.txt --vocab-size 2048 --out tok");
  t->require_subcommand(1);
  for (const char* name : {"train", "encode", "decode", "info"}) {
    CLI::App* v = add(*t, o.tokenizer, tokenizer, run, name, "", "");
    v->parse_complete_callback([&o, name] { o.tokenizer.verb = name; });
    const bool training = std::string_view(name) == "train";
    if (training) {
      v->description("Learn merges from text files");
      v->footer(
          "Example:\n  tally tokenizer train data/corpus/king_james.txt --vocab-size 2048 --out "
          "tok");
      v->add_option("files", o.tokenizer.files, "Text files")->required();
      v->add_option("--vocab-size", o.tokenizer.vocab_size, "Tokens, special ones included")
          ->check(whole(1, kMany))
          ->required();
      v->add_option("--out", o.tokenizer.out, "Folder for tokenizer.json")->required();
      v->add_option("--pattern", o.tokenizer.pattern, "Pre-tokenizer: gpt2, gpt4, llama3, ...")
          ->capture_default_str();
      v->add_option("--ties", o.tokenizer.ties, "Among equal counts: bytes-greater, id-smaller, hf")
          ->capture_default_str();
      v->add_option("--special", o.tokenizer.special_tokens,
                    "A special token; repeatable; default <|endoftext|>")
          ->allow_extra_args(false);
    } else {
      v->add_option("tokenizer", o.tokenizer.tokenizer,
                    "tokenizer.json, vocab.json, a .tiktoken file or a folder")
          ->required();
    }
    if (std::string_view(name) == "encode") {
      v->description("Text to ids");
      v->footer("Example:\n  tally tokenizer encode runs/demo --text \"In the beginning\"");
      v->add_option("files", o.tokenizer.files, "Text files; default: --text or stdin");
      v->add_option("--text", o.tokenizer.text, "The text itself, instead of files");
      v->add_option("--special", o.tokenizer.special,
                    "Special tokens in the text: plain, allow, refuse")
          ->capture_default_str();
    }
    if (std::string_view(name) == "decode") {
      v->description("Ids to text");
      v->footer("Example:\n  tally tokenizer decode runs/demo 12 55 3");
      v->add_option("ids", o.tokenizer.files, "Ids; default: from stdin");
    }
    if (std::string_view(name) == "info") {
      v->description("What a tokenizer file holds");
      v->footer("Example:\n  tally tokenizer info runs/demo");
    }
  }
  CLI::App* d =
      add_verb(app, "data", "Prepare and inspect token files",
               "tally data prepare data/corpus/king_james.txt --tokenizer tok --out tokens");
  d->require_subcommand(1);
  for (const char* name : {"prepare", "inspect"}) {
    CLI::App* v = add(*d, o.data, data, run, name, "", "");
    v->parse_complete_callback([&o, name] { o.data.verb = name; });
    v->add_option("files", o.data.files,
                  std::string_view(name) == "prepare" ? "Text files" : "Token files")
        ->required();
    if (std::string_view(name) == "prepare") {
      v->description("Text files to memory-mapped token shards");
      v->footer(
          "Example:\n  tally data prepare data/corpus/king_james.txt --tokenizer tok --out tokens");
      v->add_option("--tokenizer", o.data.tokenizer, "Its file, folder or a run")->required();
      v->add_option("--out", o.data.out, "Folder")->required();
      v->add_option("--val-fraction", o.data.val_fraction, "Share of documents held out")
          ->check(number(0, 0.5));
    } else {
      v->description("Check a token file and say what it holds");
      v->footer("Example:\n  tally data inspect tokens/train.npy");
      v->add_option("--vocab-size", o.data.vocab_size, "Every id must be below this")
          ->check(whole(1, kMany));
      v->add_option("--context", o.data.context, "Count the windows of so many tokens")
          ->check(whole(1, kMany));
      // --dtype of a raw file is an element type of files: u16, uint16, ...
      v->remove_option(v->get_option("--dtype"));
      v->add_option("--dtype", o.data.element_type, "Element type of a raw file: uint16, uint32");
    }
  }
}

}  // namespace tally::cli
