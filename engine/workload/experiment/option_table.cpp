// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/option_table.h"

#include <array>

#include "engine/quant/conversion_target.h"
#include "engine/quant/format_options.h"

namespace vitrine::engine {
namespace {

constexpr double kMostRanks = 1024;

// Columns: key, type, default, bare, minimum, maximum, choices, unit, group, help, sets, planOnly, maybeFile.
constexpr std::array kOptions = {
    OptionSpec{"model", OptionType::Text, "", "", 0, 0, "", "", "Model",
               "Model folder, GGUF file, ORG/NAME in the local Hugging Face cache, or synthetic:NAME", kModelOptions,
               false, true},
    OptionSpec{"weights", OptionType::Choice, "quantized", "", 0, 0, kWeightsChoices, "", "Model", kWeightsHelp,
               kWeightsOptions},
    OptionSpec{"dtype", OptionType::Choice, "", "", 0, 0, "float32|bfloat16|float16|float64", "", "Model",
               "Compute type; unset: float32 on the CPU, bfloat16 elsewhere. Weights stay as stored; "
               "float16 and float64 are for attention",
               kDeviceOptions},
    OptionSpec{"adapter", OptionType::Path, "", "", 0, 0, "", "", "Model",
               "Folder of a LoRA adapter in PEFT's layout to use with the model"},
    OptionSpec{"set", OptionType::KeyValues, "", "", 0, 0, "", "", "Model",
               "Config fields of a synthetic model, as num_hidden_layers=4", kModelOptions},

    OptionSpec{"backend", OptionType::Choice, "auto", "", 0, 0, "auto|cpu|cuda|meta", "", "Device",
               "Where it runs; meta computes nothing and predicts memory and time", kDeviceOptions},
    OptionSpec{"device", OptionType::Integer, "0", "", 0, 1023, "", "", "Device", "Number of the GPU", kDeviceOptions},
    OptionSpec{"tp", OptionType::Integer, "1", "", 1, kMostRanks, "", "ranks", "Device",
               "Tensor parallelism: ranks that divide attention, MLPs and every expert inside", kRankOptions},
    OptionSpec{
        "ep", OptionType::Integer, "1", "", 1, kMostRanks, "", "ranks", "Device",
        "Expert parallelism: groups of ranks that have whole experts each; attention is divided among all tp x ep "
        "ranks",
        kRankOptions},
    OptionSpec{"devices", OptionType::Text, "", "", 0, 0, "", "", "Device",
               "Devices of the ranks, as 0,1; a device may be named twice. Unset: the first ones", kRankOptions},
    OptionSpec{"kernel_pack", OptionType::TextList, "", "", 0, 0, "", "", "Device",
               "Folder of a kernel pack to take GPU kernels from; it is code that runs on the GPU", kDeviceOptions,
               false, true},
    OptionSpec{"kernel", OptionType::TextList, "", "", 0, 0, "", "", "Device",
               "Kernel variant of an op, as RmsNorm=builtin/registers; `vitrine kernels` lists them", kDeviceOptions},
    OptionSpec{"threads", OptionType::Integer, "0", "", 0, 4096, "", "threads", "Device",
               "CPU threads; 0: one for each core", kDeviceOptions},
    OptionSpec{"simd", OptionType::Choice, "auto", "", 0, 0, "auto|scalar|avx2|avx512", "", "Device",
               "Instructions that the CPU's kernels use; auto: the widest that the processor has", kDeviceOptions},
    OptionSpec{"device_profile", OptionType::Text, "", "", 0, 0, "", "", "Device",
               "Device that Meta stands for: a shipped profile or a file; unset: h100-80gb", kDeviceOptions, false,
               true},
    OptionSpec{"vram_budget", OptionType::Bytes, "", "", 1, kMaxBytes, "", "bytes", "Memory",
               "Memory that the run may hold; unset: all of the device", kDeviceOptions},
    OptionSpec{"host_budget", OptionType::Bytes, "", "", 1, kMaxBytes, "", "bytes", "Memory",
               "Host memory that the run may hold beside the device; unset: no limit", kDeviceOptions},

    OptionSpec{"prompt", OptionType::Text, "", "", 0, 0, "", "", "Prompt",
               "The user's message, or with raw the text itself; load answers it with each kind of weights",
               kPromptOptions},
    OptionSpec{"raw", OptionType::Bool, "false", "", 0, 0, "", "", "Prompt",
               "Tokenize the prompt as it is, without a chat format", kAnswerOptions},
    OptionSpec{"chat", OptionType::Path, "", "", 0, 0, "", "", "Prompt",
               "JSON file with messages: [{\"role\", \"content\"}, ...]"},
    OptionSpec{"system", OptionType::Text, "", "", 0, 0, "", "", "Prompt", "System message before the prompt",
               kTextOptions},
    OptionSpec{"chat_format", OptionType::Choice, "auto", "", 0, 0, "auto|harmony|chatml|llama3|mistral|gemma", "",
               "Prompt", "How messages become tokens; auto: the model's own chat template, else a built-in one",
               kTextOptions},
    OptionSpec{"chat_template", OptionType::Path, "", "", 0, 0, "", "", "Prompt",
               "File with a Jinja chat template, instead of the model's own", kTextOptions},
    OptionSpec{"tools", OptionType::Path, "", "", 0, 0, "", "", "Prompt",
               "JSON file with the functions that the model may call, as the chat template takes them", kTextOptions},
    OptionSpec{"reasoning_effort", OptionType::Choice, "", "", 0, 0, "none|minimal|low|medium|high|xhigh", "", "Prompt",
               "How long the model thinks; unset: as its chat template does by itself", kTextOptions},
    OptionSpec{"enable_thinking", OptionType::Choice, "", "", 0, 0, "on|off", "", "Prompt",
               "Whether the model thinks; unset: as its chat template does by itself", kTextOptions},
    OptionSpec{"chat_template_kwargs", OptionType::Text, "", "", 0, 0, "", "", "Prompt",
               "Further variables of the chat template, as a JSON object", kTextOptions},
    OptionSpec{"date", OptionType::Text, "", "", 0, 0, "", "YYYY-MM-DD", "Prompt",
               "The date that a chat format writes; unset: today", kTextOptions},
    OptionSpec{"tokens", OptionType::TokenList, "", "", 0, 0, "", "tokens", "Prompt",
               "Token ids instead of text, as 1,2,3; no tokenizer is needed", kPromptOptions},
    OptionSpec{"tokens_file", OptionType::Path, "", "", 0, 0, "", "", "Prompt",
               "safetensors file with input_ids (batch, seq), I32 or I64"},
    OptionSpec{"prompt_length", OptionType::Integer, "", "", 1, kMaxCount, "", "tokens", "Prompt",
               "A prompt of this many arbitrary tokens", kPromptOptions},
    OptionSpec{
        "batch", OptionType::Integer, "", "", 1, 65536, "", "", "Prompt",
        "Copies of the prompt that run together; of finetune: rows of a micro-batch, unset: all rows of a tokens file"},

    OptionSpec{"max_new_tokens", OptionType::Integer, "128", "", 1, kMaxCount, "", "tokens", "Sampling",
               "Tokens to generate at most", kAnswerOptions},
    OptionSpec{"temperature", OptionType::Real, "0", "", 0, 100, "", "", "Sampling", "0: greedy, the most likely token",
               kTextOptions},
    OptionSpec{"top_k", OptionType::Integer, "", "", 0, kMaxCount, "", "tokens", "Sampling",
               "Sample among the k most likely; 0: off; unset: the model's generation_config", kTextOptions},
    OptionSpec{"top_p", OptionType::Real, "", "", 0, 1, "", "", "Sampling",
               "Sample among the most likely that add up to p; 1: off; unset: the model's generation_config",
               kTextOptions},
    OptionSpec{"min_p", OptionType::Real, "", "", 0, 1, "", "", "Sampling",
               "Drop tokens less likely than p times the best; 0: off; unset: the model's generation_config",
               kTextOptions},
    OptionSpec{
        "repetition_penalty", OptionType::Real, "", "", 0.01, 100, "", "", "Sampling",
        "Divides the logits of tokens already seen; 1: off; unset: 1, or when sampling the model's generation_config",
        kTextOptions},
    OptionSpec{"frequency_penalty", OptionType::Real, "0", "", -2, 2, "", "", "Sampling",
               "Taken off the logit of a new token for each time that it was chosen", kTextOptions},
    OptionSpec{"presence_penalty", OptionType::Real, "0", "", -2, 2, "", "", "Sampling",
               "Taken off the logit of each token that was chosen before", kTextOptions},
    OptionSpec{"seed", OptionType::Integer, "0", "", 0, 9007199254740991.0, "", "", "Sampling",
               "Seed of sampling, of synthetic weights and of arbitrary prompts", kRunOptions},
    OptionSpec{"stop", OptionType::TextList, "", "", 0, 0, "", "", "Sampling",
               "Texts that end the generation; they are not part of the text", kTextOptions},
    OptionSpec{"ignore_eos", OptionType::Bool, "false", "", 0, 0, "", "", "Sampling",
               "Never choose end-of-sequence tokens", kTextOptions},
    OptionSpec{"logprobs", OptionType::Integer, "0", "5", 0, 20, "", "", "Sampling",
               "Report each token's logprob with this many of the best alternatives"},

    OptionSpec{"speculate", OptionType::Choice, "none", "", 0, 0, "none|ngram|draft", "", "Speculation",
               "Guess tokens and check several in one step, with the same answer; ngram: copied from the text so far, "
               "draft: by a smaller model"},
    OptionSpec{"draft_tokens", OptionType::Integer, "5", "", 1, 64, "", "tokens", "Speculation",
               "Tokens that are guessed and checked together at most"},
    OptionSpec{"draft_model", OptionType::Text, "", "", 0, 0, "", "", "Speculation",
               "The smaller model that guesses, with the same vocabulary: a folder, ORG/NAME or synthetic:NAME", 0,
               false, true},
    OptionSpec{"ngram_shortest", OptionType::Integer, "2", "", 1, 64, "", "tokens", "Speculation",
               "ngram: at least so many of the last tokens must stand earlier too"},
    OptionSpec{"ngram_longest", OptionType::Integer, "4", "", 1, 64, "", "tokens", "Speculation",
               "ngram: a place where so many of the last tokens stand is good enough"},
    OptionSpec{"assumed_acceptance", OptionType::Real, "0.6", "", 0, 1, "", "", "Speculation",
               "On Meta: how likely a guessed token is right, given that those before it are"},

    OptionSpec{"cache", OptionType::Choice, "dynamic", "", 0, 0, "dynamic|static|paged", "", "Memory",
               "KV cache: grows page by page, is reserved for prompt and new tokens, or takes pages of one pool"},
    OptionSpec{"page_size", OptionType::Integer, "0", "", 0, 65536, "", "tokens", "Memory",
               "Tokens in one page of the KV cache; 0: 64, and up to 256 in sliding layers", kTextOptions},
    OptionSpec{"sliding_cache", OptionType::Bool, "true", "", 0, 0, "", "", "Memory",
               "Sliding layers keep window - 1 tokens; false: they keep all, as full layers do", kTextOptions},
    OptionSpec{
        "kv_dtype", OptionType::Choice, "", "", 0, 0, "float32|bfloat16|fp8|int8", "", "Memory",
        "Type of cached keys and values; fp8 (E4M3) and int8 have a scale for each token and head; unset: as dtype"},
    OptionSpec{"prefill_chunk", OptionType::Integer, "0", "", 0, kMaxCount, "", "tokens", "Memory",
               "Tokens of one prefill step; 0: 512 on the CPU, 8192 elsewhere"},

    OptionSpec{"slots", OptionType::Integer, "16", "", 1, 4096, "", "", "Batching", "Requests that run together",
               kBatchingOptions},
    OptionSpec{
        "scheduler", OptionType::Choice, "fifo", "", 0, 0, "fifo|prefill-first|longest-first", "", "Batching",
        "Whose tokens come first: those of running requests, or prompts; longest-first: as fifo, but the longest "
        "answers begin first",
        kBatchingOptions},
    OptionSpec{
        "preemption", OptionType::Choice, "recompute", "", 0, 0, "off|recompute|swap", "", "Batching",
        "When pages run short: the youngest computes again, or its pages go to the host; off: pages of the longest "
        "answers are set aside",
        kBatchingOptions},
    OptionSpec{"token_budget", OptionType::Integer, "8192", "", 1, kMaxCount, "", "tokens", "Batching",
               "Tokens of one step at most, prompts and answers together", kBatchingOptions},
    OptionSpec{"gather_steps", OptionType::Integer, "8", "", 0, 4096, "", "steps", "Batching",
               "While more requests wait than slots are free: steps that a free slot waits for others",
               kBatchingOptions},
    OptionSpec{
        "kv_pages", OptionType::Integer, "0", "", 0, kMaxCount, "", "pages", "Memory",
        "Pages that the KV cache's pool for full layers grows to; 0: what the requests may come to, or what fits",
        kBatchingOptions},
    OptionSpec{"swap_space", OptionType::Bytes, "4GiB", "", 0, 0, "", "bytes", "Memory",
               "Host memory for pages of preempted requests", kBatchingOptions},
    OptionSpec{"share_prefixes", OptionType::Bool, "false", "", 0, 0, "", "", "Memory",
               "Prompts that begin alike share pages; sliding layers keep copies of their rings for it",
               kBatchingOptions},

    OptionSpec{"max_context", OptionType::Bool, "false", "", 0, 0, "", "", "Search",
               "Find the longest context that fits the budget", 0, true},
    OptionSpec{"max_batch", OptionType::Bool, "false", "", 0, 0, "", "", "Search",
               "Find the largest batch that fits the budget", 0, true},

    OptionSpec{
        "group_size", OptionType::Integer, "", "", -1, 1 << 20, "", "inputs", "Conversion",
        "Inputs that share a scale; -1: all of a row, of fp8 the whole matrix; unset: 128, of int8 -1, with qat 32"},
    OptionSpec{"int4_rule", OptionType::Choice, "", "", 0, 0, kInt4Rules, "", "Conversion", kInt4RuleHelp},
    OptionSpec{"ignore", OptionType::TextList, "", "", 0, 0, "", "", "Conversion",
               "Modules that stay dense: a name, the beginning or end of one, or re:PATTERN"},
    OptionSpec{"output", OptionType::Path, "", "", 0, 0, "", "", "Run", "File or folder that the result goes to"},
    OptionSpec{"repeat", OptionType::Integer, "", "", 1, 1000, "", "times", "Run",
               "Do it this many times; times are medians; unset: once, attention three times"},
    OptionSpec{"profile", OptionType::Choice, "light", "", 0, 0, "off|light|full", "", "Run",
               "What is recorded: nothing, memory and steps, or every layer and op too", kRunOptions},
    OptionSpec{"profile_window", OptionType::Integer, "20", "", 1, 1000000, "", "steps", "Run",
               "Full profile on a GPU: trace every kernel in this many decode steps of each profile_every",
               kDeviceOptions},
    OptionSpec{"profile_every", OptionType::Integer, "200", "", 1, 1000000, "", "steps", "Run",
               "Full profile on a GPU: how many decode steps lie between the beginnings of two windows",
               kDeviceOptions},
    OptionSpec{"profile_counters", OptionType::Integer, "1000", "", 0, 10000, "", "us", "Run",
               "Sample the GPU's hardware counters this often, from 100; 0: not at all", kDeviceOptions},
    OptionSpec{"plan", OptionType::Bool, "false", "", 0, 0, "", "", "Run",
               "Price it on Meta with the device profile instead of running it", kPlanningOptions},

};

} // namespace

std::span<const OptionSpec> sharedOptionTable() {
    return kOptions;
}

std::string optionFlag(std::string_view key) {
    std::string out;
    if (key.starts_with("--")) {
        out = key.substr(2);
        for (char& c : out) {
            c = c == '-' ? '_' : c;
        }
        return out;
    }
    out = "--" + std::string(key);
    for (char& c : out) {
        c = c == '_' ? '-' : c;
    }
    return out;
}

} // namespace vitrine::engine
