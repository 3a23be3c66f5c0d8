// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapters/adapter_tensor_name.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>
#include <utility>
#include <vector>

namespace vitrine::engine {

namespace {

using Part = AdapterTensorName::Part;
using Words = std::vector<std::string>;

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kInner = "base_layer";

/// Words that end the module's name. What follows them depends on the word.
constexpr std::array<std::string_view, 8> kMarks = {
    "lora_A",          "lora_B",          "lora_embedding_A", "lora_embedding_B", "lora_magnitude_vector",
    "modules_to_save", "original_module", "token_adapter"};

/// Words that wrappers of torch put into names.
constexpr std::array<std::string_view, 3> kWrappers = {"_orig_mod", "_fsdp_wrapped_module",
                                                       "_checkpoint_wrapped_module"};

constexpr std::array<std::pair<Part, std::string_view>, 7> kEnds = {{
    {Part::A, ".lora_A.weight"},
    {Part::B, ".lora_B.weight"},
    {Part::EmbeddingA, ".lora_embedding_A"},
    {Part::EmbeddingB, ".lora_embedding_B"},
    {Part::Magnitude, ".lora_magnitude_vector"},
    {Part::BiasOfB, ".lora_B.bias"},
    {Part::Rows, ".token_adapter.trainable_tokens_delta"},
}};

Words wordsOf(std::string_view name) {
    Words words;
    for (;;) {
        const std::size_t stop = name.find('.');
        const std::string_view word = name.substr(0, stop);
        if (std::ranges::find(kWrappers, word) == kWrappers.end()) {
            words.emplace_back(word);
        }
        if (stop == std::string_view::npos) {
            return words;
        }
        name.remove_prefix(stop + 1);
    }
}

std::string joined(std::span<const std::string> words) {
    return fmt::format("{}", fmt::join(words, "."));
}

/// The words without PEFT's prefix, that of DistributedDataParallel, or with neither.
std::span<const std::string> withoutPrefix(std::span<const std::string> words) {
    if (!words.empty() && words[0] == "module") {
        words = words.subspan(1);
    }
    const bool prefix = words.size() > 2 && words[0] == "base_model" && words[1] == "model";
    return prefix ? words.subspan(2) : words;
}

/// The module's name as a causal model has it: adapters of a model without its head lack the first "model.".
std::string moduleName(std::span<const std::string> words) {
    const bool bare = !words.empty() && (words[0] == "layers" || words[0] == "embed_tokens" || words[0] == "norm");
    return (bare ? "model." : "") + joined(words);
}

/// [NAME,] LAST: takes the adapter's name. False when the rest is another one.
bool readEnd(std::span<const std::string> rest, std::string_view last, std::string& adapter) {
    if (rest.empty() || rest.back() != last || rest.size() > 2) {
        return false;
    }
    adapter = rest.size() == 2 ? rest[0] : "";
    return true;
}

/// [NAME]
bool readName(std::span<const std::string> rest, std::string& adapter) {
    adapter = rest.empty() ? "" : rest[0];
    return rest.size() < 2;
}

/// What follows "lora_A" and the other words of LoRA.
bool readLora(std::string_view mark, std::span<const std::string> rest, AdapterTensorName& out) {
    if (mark == "lora_A" || mark == "lora_B") {
        const bool bias = mark == "lora_B" && !rest.empty() && rest.back() == "bias";
        out.part = bias ? Part::BiasOfB : mark == "lora_A" ? Part::A : Part::B;
        return readEnd(rest, bias ? "bias" : "weight", out.adapter);
    }
    if (mark == "lora_magnitude_vector") {
        out.part = Part::Magnitude;
        return readEnd(rest, "weight", out.adapter) || readName(rest, out.adapter);
    }
    out.part = mark == "lora_embedding_A" ? Part::EmbeddingA : Part::EmbeddingB;
    return readName(rest, out.adapter);
}

} // namespace

std::optional<AdapterTensorName> AdapterTensorName::parse(std::string_view name) {
    const Words all = wordsOf(name);
    std::span<const std::string> words = withoutPrefix(all);
    const auto mark = std::ranges::find_if(
        words, [](const std::string& word) { return std::ranges::find(kMarks, word) != kMarks.end(); });
    std::span<const std::string> module(words.begin(), mark);
    std::span<const std::string> rest(mark == words.end() ? mark : mark + 1, words.end());
    AdapterTensorName out;
    out.part = Part::Whole;
    bool known = true;
    if (mark == words.end()) {
        known = module.size() > 1;
        rest = known ? module.last(1) : rest;
        module = known ? module.first(module.size() - 1) : module;
    } else if (*mark == "original_module") {
        out.part = Part::Unused;
    } else if (*mark == "modules_to_save") {
        known = !rest.empty();
        out.saved = true;
        out.adapter = rest.size() > 1 ? rest[0] : "";
        rest = rest.size() > 1 ? rest.subspan(1) : rest;
    } else if (*mark == "token_adapter") {
        const std::string_view kind = rest.empty() ? std::string_view() : std::string_view(rest[0]);
        if (kind == kInner) {
            known = rest.size() == 2;
        } else {
            out.part = kind == "trainable_tokens_delta" ? Part::Rows : Part::Unused;
            known = !rest.empty() && readName(rest.subspan(1), out.adapter);
        }
    } else {
        known = readLora(*mark, rest, out);
    }
    for (; !module.empty() && module.back() == kInner; module = module.first(module.size() - 1)) {
        ++out.inner;
    }
    out.module = moduleName(module);
    if (out.part == Part::Whole && known) {
        // Of a module that holds others, the copy has its parts under their own names.
        out.leaf = rest.back();
        for (const std::string& word : rest.first(rest.size() - 1)) {
            out.module += word == kInner ? "" : "." + word;
        }
    }
    const bool named = !module.empty() && std::ranges::none_of(module, &std::string::empty);
    return known && named ? std::optional(out) : std::nullopt;
}

std::string AdapterTensorName::text() const {
    std::string out = std::string(kPrefix) + module;
    for (int i = 0; i < inner; ++i) {
        out += "." + std::string(kInner);
    }
    const auto* const end = std::ranges::find_if(kEnds, [&](const auto& row) { return row.first == part; });
    return end == kEnds.end() ? out + "." + leaf : out + std::string(end->second);
}

std::string AdapterTensorName::parameter() const {
    return module + "." + (part == Part::Rows ? "weight" : leaf);
}

bool isStackName(std::string_view parameter) {
    return !parameter.ends_with(".weight");
}

std::string moduleOfParameter(const std::string& parameter) {
    return parameter.substr(0, parameter.rfind('.'));
}

std::string outerParameter(const std::string& parameter) {
    constexpr std::string_view kFirst = ".gate_up_proj";
    return parameter.ends_with(kFirst) ? moduleOfParameter(parameter) + ".down_proj" : std::string();
}

AdapterTensorName loraName(const std::string& parameter, bool outerIsAdapted, bool embedding, bool first) {
    AdapterTensorName name;
    name.module = moduleOfParameter(parameter);
    name.inner = outerIsAdapted ? 1 : 0;
    name.part = embedding ? (first ? Part::EmbeddingA : Part::EmbeddingB) : (first ? Part::A : Part::B);
    return name;
}

} // namespace vitrine::engine
