// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Masks for tests of the map, from the Python that users write.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "ui/models/mask_lab/mask_map.h"

namespace vitrine::ui::test {

/// An int32 tensor of one dimension.
inline engine::CapturedTensor integers(const std::vector<std::int32_t>& values) {
    engine::CapturedTensor tensor;
    tensor.dtype = kernels::DType::I32;
    tensor.shape = kernels::Shape{static_cast<std::int64_t>(values.size())};
    std::vector<std::byte> bytes(values.size() * sizeof(std::int32_t));
    std::copy_n(reinterpret_cast<const std::byte*>(values.data()), bytes.size(), bytes.begin());
    tensor.data = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    return tensor;
}

/// The document of every position.
inline std::vector<std::int32_t> documents(const std::vector<std::int64_t>& lengths) {
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        out.insert(out.end(), static_cast<std::size_t>(lengths[i]), static_cast<std::int32_t>(i));
    }
    return out;
}

inline MaskProgramPtr program(const std::string& text, const std::string& expression,
                              const engine::CapturedTensors& tensors = {}, bool score = false) {
    const std::array files{engine::PyFile{"mask A", text}};
    engine::ProgramOptions options;
    options.tensors = tensors;
    const engine::PyModule module = engine::PyModule::parse(files);
    return maskProgram(score ? module.score(expression, options) : module.mask(expression, options));
}

inline const char* const kSlidingDocument = R"(WINDOW = 2048

def sliding(b, h, q_idx, kv_idx):
    causal = q_idx >= kv_idx
    near = q_idx - kv_idx < WINDOW
    return causal & near

def document(b, h, q_idx, kv_idx):
    return doc_id[q_idx] == doc_id[kv_idx]

mask = and_masks(sliding, document)
)";
inline const char* const kCausal = "def causal(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n";

inline const std::vector<std::int64_t> kLengths{1250, 2900, 640, 3460, 410, 2210, 1820, 780, 2914};

inline MaskMapPtr map(MaskProgramPtr mask, std::int64_t queries, std::int64_t keys, std::int64_t block = 128,
                      std::int64_t heads = 1) {
    static base::ThreadPool pool(2);
    MaskMapQuery request;
    request.name = QStringLiteral("test");
    request.mask = std::move(mask);
    request.shape = {1, heads, queries, keys, block, block};
    return makeMaskMap(request, pool);
}

/// Documents, sliding window and causality over 16,384 tokens.
inline MaskMapPtr slidingDocument() {
    return map(program(kSlidingDocument, "mask", {{"doc_id", integers(documents(kLengths))}}), 16384, 16384);
}
inline MaskMapPtr causal(std::int64_t queries, std::int64_t keys, std::int64_t block = 128) {
    return map(program(kCausal, "causal"), queries, keys, block);
}

} // namespace vitrine::ui::test
