// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <array>

#include "engine/workload/experiment.h"

namespace vitrine::engine {
namespace {

constexpr std::uint32_t kForward = kGenerate | kLoad | kLogits | kBench | kBatch | kServe;
constexpr std::uint32_t kAnswers = kGenerate | kBatch | kServe;
constexpr std::uint32_t kOnDevice = kForward | kAttention;
constexpr double kMaxCount = 16777216.0;

// Columns: key, type, default, bare, minimum, maximum, choices, unit, group, help, workloads.
constexpr std::array kOptions = {
    OptionSpec{"model", OptionType::Text, "", "", 0, 0, "", "", "Model",
               "Model folder, ORG/NAME in the local Hugging Face cache, or synthetic:NAME",
               kForward | kPlan | kTokenize | kSynthesize},
    OptionSpec{"weights", OptionType::Choice, "quantized", "", 0, 0, "quantized|dequantized|both", "", "Model",
               "Keep MXFP4 weights as stored or expand them to BF16 at load; load also takes both, one after the other",
               kForward | kPlan},
    OptionSpec{"dtype", OptionType::Choice, "", "", 0, 0, "float32|bfloat16|float16|float64", "", "Model",
               "Compute type; unset: float32 on the CPU, bfloat16 elsewhere. Weights stay as stored; "
               "float16 and float64 are for attention",
               kOnDevice | kPlan},
    OptionSpec{"set", OptionType::KeyValues, "", "", 0, 0, "", "", "Model",
               "Config fields of a synthetic model, as num_hidden_layers=4",
               kForward | kPlan | kTokenize | kSynthesize},

    OptionSpec{"backend", OptionType::Choice, "auto", "", 0, 0, "auto|cpu|cuda|meta", "", "Device",
               "Where it runs; meta computes nothing and predicts memory and time", kOnDevice | kPlan},
    OptionSpec{"device", OptionType::Integer, "0", "", 0, 1023, "", "", "Device", "Number of the GPU", kOnDevice},
    OptionSpec{"kernel_pack", OptionType::TextList, "", "", 0, 0, "", "", "Device",
               "Folder of a kernel pack to take GPU kernels from; it is code that runs on the GPU", kOnDevice},
    OptionSpec{"kernel", OptionType::TextList, "", "", 0, 0, "", "", "Device",
               "Kernel variant of an op, as RmsNorm=builtin/rows; `vitrine kernels` lists them", kOnDevice},
    OptionSpec{"threads", OptionType::Integer, "0", "", 0, 4096, "", "threads", "Device",
               "CPU threads; 0: one for each core", kOnDevice | kPlan},
    OptionSpec{"simd", OptionType::Choice, "auto", "", 0, 0, "auto|scalar|avx2|avx512", "", "Device",
               "Instructions that the CPU's kernels use; auto: the widest that the processor has", kOnDevice},
    OptionSpec{"device_profile", OptionType::Text, "", "", 0, 0, "", "", "Device",
               "Device that Meta stands for: a shipped profile or a file; unset: h100-80gb", kOnDevice | kPlan},
    OptionSpec{"vram_budget", OptionType::Bytes, "", "", 0, 0, "", "bytes", "Memory",
               "Memory that the run may hold; unset: all of the device", kOnDevice | kPlan},
    OptionSpec{"host_budget", OptionType::Bytes, "", "", 0, 0, "", "bytes", "Memory",
               "Host memory that the run may hold beside the device; unset: no limit", kOnDevice | kPlan},

    OptionSpec{"prompt", OptionType::Text, "", "", 0, 0, "", "", "Prompt",
               "The user's message, or with raw the text itself; load answers it with each kind of weights",
               kGenerate | kLoad | kPlan},
    OptionSpec{"raw", OptionType::Bool, "false", "", 0, 0, "", "", "Prompt",
               "Tokenize the prompt as it is, without a chat format", kAnswers | kLoad | kPlan},
    OptionSpec{"chat", OptionType::Path, "", "", 0, 0, "", "", "Prompt",
               "JSON file with messages: [{\"role\", \"content\"}, ...]", kGenerate | kPlan},
    OptionSpec{"system", OptionType::Text, "", "", 0, 0, "", "", "Prompt", "System message before the prompt",
               kAnswers | kPlan},
    OptionSpec{"chat_format", OptionType::Choice, "auto", "", 0, 0, "auto|harmony|chatml|llama3|mistral|gemma", "",
               "Prompt", "How messages become tokens; auto: chosen from the model", kAnswers | kPlan},
    OptionSpec{"reasoning_effort", OptionType::Choice, "medium", "", 0, 0, "low|medium|high", "", "Prompt",
               "How long a harmony model thinks", kAnswers | kPlan},
    OptionSpec{"date", OptionType::Text, "", "", 0, 0, "", "YYYY-MM-DD", "Prompt",
               "The date that a chat format writes; unset: today", kAnswers | kPlan},
    OptionSpec{"tokens", OptionType::TokenList, "", "", 0, 0, "", "tokens", "Prompt",
               "Token ids instead of text, as 1,2,3; no tokenizer is needed", kGenerate | kLoad | kPlan},
    OptionSpec{"tokens_file", OptionType::Path, "", "", 0, 0, "", "", "Prompt",
               "safetensors file with input_ids (batch, seq), I32 or I64", kGenerate | kLogits | kPlan},
    OptionSpec{"prompt_length", OptionType::Integer, "", "", 1, kMaxCount, "", "tokens", "Prompt",
               "A prompt of this many arbitrary tokens", kGenerate | kLoad | kPlan},
    OptionSpec{"batch", OptionType::Integer, "1", "", 1, 65536, "", "", "Prompt",
               "Copies of the prompt that run together", kGenerate | kPlan},

    OptionSpec{"max_new_tokens", OptionType::Integer, "128", "", 1, kMaxCount, "", "tokens", "Sampling",
               "Tokens to generate at most", kAnswers | kLoad | kPlan},
    OptionSpec{"temperature", OptionType::Real, "0", "", 0, 100, "", "", "Sampling", "0: greedy, the most likely token",
               kAnswers},
    OptionSpec{"top_k", OptionType::Integer, "", "", 0, kMaxCount, "", "tokens", "Sampling",
               "Sample among the k most likely; 0: off; unset: the model's generation_config", kAnswers},
    OptionSpec{"top_p", OptionType::Real, "", "", 0, 1, "", "", "Sampling",
               "Sample among the most likely that add up to p; 1: off; unset: the model's generation_config", kAnswers},
    OptionSpec{"min_p", OptionType::Real, "", "", 0, 1, "", "", "Sampling",
               "Drop tokens less likely than p times the best; 0: off; unset: the model's generation_config", kAnswers},
    OptionSpec{
        "repetition_penalty", OptionType::Real, "", "", 0.01, 100, "", "", "Sampling",
        "Divides the logits of tokens already seen; 1: off; unset: 1, or when sampling the model's generation_config",
        kAnswers},
    OptionSpec{"seed", OptionType::Integer, "0", "", 0, 9007199254740991.0, "", "", "Sampling",
               "Seed of sampling, of synthetic weights and of arbitrary prompts", kOnDevice | kPlan | kSynthesize},
    OptionSpec{"stop", OptionType::TextList, "", "", 0, 0, "", "", "Sampling",
               "Texts that end the generation; they are not part of the text", kAnswers},
    OptionSpec{"ignore_eos", OptionType::Bool, "false", "", 0, 0, "", "", "Sampling",
               "Never choose end-of-sequence tokens", kAnswers},
    OptionSpec{"logprobs", OptionType::Integer, "0", "5", 0, 20, "", "", "Sampling",
               "Report each token's logprob with this many of the best alternatives", kGenerate},

    OptionSpec{"cache", OptionType::Choice, "dynamic", "", 0, 0, "dynamic|static|paged", "", "Memory",
               "KV cache: grows page by page, is reserved for prompt and new tokens, or takes pages of one pool",
               kGenerate | kPlan},
    OptionSpec{"page_size", OptionType::Integer, "0", "", 0, 65536, "", "tokens", "Memory",
               "Tokens in one page of the KV cache; 0: 64, and up to 256 in sliding layers", kAnswers | kPlan},
    OptionSpec{"sliding_cache", OptionType::Bool, "true", "", 0, 0, "", "", "Memory",
               "Sliding layers keep window - 1 tokens; false: they keep all, as full layers do", kAnswers | kPlan},
    OptionSpec{
        "kv_dtype", OptionType::Choice, "", "", 0, 0, "float32|bfloat16|fp8|int8", "", "Memory",
        "Type of cached keys and values; fp8 (E4M3) and int8 have a scale for each token and head; unset: as dtype",
        kAnswers | kLogits | kPlan | kBench},
    OptionSpec{"prefill_chunk", OptionType::Integer, "0", "", 0, kMaxCount, "", "tokens", "Memory",
               "Tokens of one prefill step; 0: 512 on the CPU, 8192 elsewhere", kGenerate | kLogits | kPlan},

    OptionSpec{"trace", OptionType::Text, "", "", 0, 0, "", "", "Requests",
               "File of requests, one JSON object on each line, or a made one: fixed, uniform, poisson, long-tail",
               kBatch | kPlan},
    OptionSpec{"requests", OptionType::Integer, "100", "", 1, 1e6, "", "", "Requests", "How many a made trace has",
               kBatch | kPlan},
    OptionSpec{"prompt_tokens", OptionType::Text, "16-256", "", 0, 0, "", "tokens", "Requests",
               "Prompt lengths of a made trace", kBatch | kPlan},
    OptionSpec{"new_tokens", OptionType::Text, "16-256", "", 0, 0, "", "tokens", "Requests",
               "Answer lengths of a made trace; long-tail: from the shortest to the cap", kBatch | kPlan},
    OptionSpec{"rate", OptionType::Real, "0", "", 0, 1e6, "", "1/s", "Requests",
               "Requests that arrive each second in a made trace; 0: all at the start", kBatch | kPlan},
    OptionSpec{"save_trace", OptionType::Path, "", "", 0, 0, "", "", "Requests", "Write the trace to this file",
               kBatch | kPlan},
    OptionSpec{"outputs", OptionType::Path, "", "", 0, 0, "", "", "Requests",
               "Write the answers to this file, one {\"id\", \"ids\"} on each line", kBatch},
    OptionSpec{"mode", OptionType::Choice, "continuous", "", 0, 0, "static|continuous", "", "Batching",
               "static: full batches, padded, until the longest answer ends; continuous: a slot is free when its "
               "request ends",
               kBatch | kPlan},
    OptionSpec{"slots", OptionType::Integer, "16", "", 1, 4096, "", "", "Batching", "Requests that run together",
               kBatch | kServe | kPlan},
    OptionSpec{
        "scheduler", OptionType::Choice, "fifo", "", 0, 0, "fifo|prefill-first|longest-first", "", "Batching",
        "Whose tokens come first: those of running requests, or prompts; longest-first: as fifo, but the longest "
        "answers begin first",
        kBatch | kServe | kPlan},
    OptionSpec{
        "preemption", OptionType::Choice, "recompute", "", 0, 0, "off|recompute|swap", "", "Batching",
        "When pages run short: the youngest computes again, or its pages go to the host; off: pages of the longest "
        "answers are set aside",
        kBatch | kServe | kPlan},
    OptionSpec{"token_budget", OptionType::Integer, "8192", "", 1, kMaxCount, "", "tokens", "Batching",
               "Tokens of one step at most, prompts and answers together", kBatch | kServe | kPlan},
    OptionSpec{"gather_steps", OptionType::Integer, "8", "", 0, 4096, "", "steps", "Batching",
               "While more requests wait than slots are free: steps that a free slot waits for others",
               kBatch | kServe | kPlan},
    OptionSpec{"session_limit", OptionType::Bytes, "512MiB", "", 0, 0, "", "bytes", "Experiment",
               "What a server keeps of itself in its session; the oldest parts of it are deleted. 0: everything",
               kServe},
    OptionSpec{
        "kv_pages", OptionType::Integer, "0", "", 0, kMaxCount, "", "pages", "Memory",
        "Pages that the KV cache's pool for full layers grows to; 0: what the requests may come to, or what fits",
        kBatch | kServe | kPlan},
    OptionSpec{"swap_space", OptionType::Bytes, "4GiB", "", 0, 0, "", "bytes", "Memory",
               "Host memory for pages of preempted requests", kBatch | kServe | kPlan},
    OptionSpec{"share_prefixes", OptionType::Bool, "false", "", 0, 0, "", "", "Memory",
               "Prompts that begin alike share pages; sliding layers keep copies of their rings for it",
               kBatch | kServe | kPlan},

    OptionSpec{"max_context", OptionType::Bool, "false", "", 0, 0, "", "", "Search",
               "Find the longest context that fits the budget", kPlan},
    OptionSpec{"max_batch", OptionType::Bool, "false", "", 0, 0, "", "", "Search",
               "Find the largest batch that fits the budget", kPlan},

    OptionSpec{"tokenizer", OptionType::Path, "", "", 0, 0, "", "", "Model", "tokenizer.json; unset: the model's",
               kTokenize},
    OptionSpec{"jsonl", OptionType::Path, "", "", 0, 0, "", "", "Run", "File of rows {\"text\": ...}", kTokenize},
    OptionSpec{"text", OptionType::Text, "", "", 0, 0, "", "", "Run", "One text instead of a file", kTokenize},

    OptionSpec{
        "mods", OptionType::TextList, "", "", 0, 0, "", "", "Attention",
        "Python file with score_mod and mask_mod functions; may be given several times. The built-in catalogue is "
        "always at hand",
        kAttention},
    OptionSpec{"program", OptionType::Text, "", "", 0, 0, "", "", "Attention",
               "The text of such a file, read behind the files", kAttention},
    OptionSpec{"mask", OptionType::Text, "", "", 0, 0, "", "", "Attention",
               "A mask function, or a call that makes one: \"causal\", \"generate_natten(16, 16, 5, 5)\"", kAttention},
    OptionSpec{"score", OptionType::Text, "", "", 0, 0, "", "", "Attention",
               "A score function, or a call that makes one", kAttention},
    OptionSpec{"define", OptionType::TextList, "", "", 0, 0, "", "", "Attention",
               "An integer that the file reads as a global, as WINDOW=1024", kAttention},
    OptionSpec{"parameter", OptionType::TextList, "", "", 0, 0, "", "", "Attention",
               "A number in place of the file's constant or of a factory's argument of that name, as WINDOW=512",
               kAttention},
    OptionSpec{"capture", OptionType::TextList, "", "", 0, 0, "", "", "Attention",
               "A small captured tensor: prefix=5,9, slopes=0.5,0.25, doc_id=documents:1250,2900 (from the documents' "
               "lengths)",
               kAttention},
    OptionSpec{"tensors", OptionType::Path, "", "", 0, 0, "", "", "Attention",
               "q, k, v (batch, heads, seq, headDim), grad_out, optional sinks, and captured tensors by name: a "
               "safetensors file",
               kAttention},
    OptionSpec{
        "random", OptionType::Text, "", "", 0, 0, "", "B,H,HKV,S,D", "Attention",
        "Random q, k, v and grad_out of these sizes in place of the file's; B,H,HKV,Q,KV,D where queries and keys "
        "differ",
        kAttention},
    OptionSpec{"stands_for", OptionType::Text, "", "", 0, 0, "", "B,H,HKV,S,D", "Attention",
               "The sizes that random stands for, where a smaller part of them is measured; kept with the run",
               kAttention},
    OptionSpec{"no_sinks", OptionType::Bool, "false", "", 0, 0, "", "", "Attention", "Leave the file's sinks out",
               kAttention},
    OptionSpec{"backward", OptionType::Bool, "false", "", 0, 0, "", "", "Attention", "Also compute gradients",
               kAttention},
    OptionSpec{"compare_full", OptionType::Bool, "false", "", 0, 0, "", "", "Attention",
               "Also time the same tensors without the mask", kAttention},
    OptionSpec{"block_size", OptionType::Integer, "128", "", 1, kMaxCount, "", "tokens", "Attention",
               "Queries and keys of a mask block", kAttention},
    OptionSpec{"scale", OptionType::Real, "", "", -1e6, 1e6, "", "", "Attention",
               "Factor of q.k; unset: 1 / sqrt(headDim)", kAttention},

    OptionSpec{
        "bench", OptionType::Choice, "cpu-decode", "", 0, 0,
        "cpu-decode|gpt-oss|batch|load|profiling|attention|copy|matmul", "", "Run",
        "Which benchmark: decoding on the CPU; decode and prefill of a model beside their rooflines; static and "
        "continuous batching; loading a folder; what profiling costs; attention programs forward and backward; or one "
        "ceiling",
        kBench},
    OptionSpec{"batches", OptionType::Text, "1,4,16,64", "", 0, 0, "", "", "Run",
               "Batch sizes of the decode rows of bench gpt-oss; none: no such rows", kBench},
    OptionSpec{"contexts", OptionType::Text, "1024,8192", "", 0, 0, "", "tokens", "Run",
               "Tokens in the KV cache for the decode rows of bench gpt-oss", kBench},
    OptionSpec{"prompts", OptionType::Text, "512,2048,8192", "", 0, 0, "", "tokens", "Run",
               "Prompt lengths of the prefill rows of bench gpt-oss; none: no such rows", kBench},
    OptionSpec{"scenarios", OptionType::Text, "uniform-16,uniform-32,long-tail-16,uniform-64,many-128", "", 0, 0, "",
               "", "Run",
               "Rows of bench batch: trace and slots, and -longest-first for that order; many is 1,000 requests",
               kBench},
    OptionSpec{"output", OptionType::Path, "", "", 0, 0, "", "", "Run", "File or folder that the result goes to",
               kLogits | kSynthesize | kAttention},
    OptionSpec{"repeat", OptionType::Integer, "", "", 1, 1000, "", "times", "Run",
               "Do it this many times; times are medians; unset: once, attention three times",
               kGenerate | kLoad | kLogits | kBench | kAttention},
    OptionSpec{"profile", OptionType::Choice, "light", "", 0, 0, "off|light|full", "", "Run",
               "What is recorded: nothing, memory and steps, or every layer and op too",
               kOnDevice | kPlan | kSynthesize},
    OptionSpec{"profile_window", OptionType::Integer, "20", "", 1, 1000000, "", "steps", "Run",
               "Full profile on a GPU: trace every kernel in this many decode steps of each profile_every", kOnDevice},
    OptionSpec{"profile_every", OptionType::Integer, "200", "", 1, 1000000, "", "steps", "Run",
               "Full profile on a GPU: how many decode steps lie between the beginnings of two windows", kOnDevice},
    OptionSpec{"profile_counters", OptionType::Integer, "1000", "", 0, 10000, "", "us", "Run",
               "Sample the GPU's hardware counters this often, from 100; 0: not at all", kOnDevice},
    OptionSpec{"plan", OptionType::Bool, "false", "", 0, 0, "", "", "Run",
               "Price it on Meta with the device profile instead of running it", kGenerate | kLoad | kBatch | kPlan},
};

constexpr std::array<std::string_view, 9> kWorkloads = {"generate", "load",      "logits", "tokenize", "synthesize",
                                                        "bench",    "attention", "batch",  "serve"};
constexpr std::array<std::uint32_t, 9> kWorkloadBits = {kGenerate, kLoad,      kLogits, kTokenize, kSynthesize,
                                                        kBench,    kAttention, kBatch,  kServe};

} // namespace

std::span<const OptionSpec> optionTable() {
    return kOptions;
}

const OptionSpec* findOption(std::string_view key) {
    for (const OptionSpec& option : kOptions) {
        if (option.key == key) {
            return &option;
        }
    }
    return nullptr;
}

std::span<const std::string_view> workloadNames() {
    return kWorkloads;
}

std::uint32_t workloadBit(std::string_view workload) {
    for (std::size_t i = 0; i < kWorkloads.size(); ++i) {
        if (kWorkloads[i] == workload) {
            return kWorkloadBits[i];
        }
    }
    return 0;
}

bool optionApplies(const OptionSpec& option, std::string_view workload, bool plan) {
    return option.workloads == kPlan ? plan : (option.workloads & workloadBit(workload)) != 0;
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
