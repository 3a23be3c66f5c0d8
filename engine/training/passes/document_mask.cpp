// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/passes/document_mask.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/program/causal_blocks.h"
#include "kernels/program/program_builder.h"
#include "kernels/program/span_blocks.h"

namespace vitrine::engine {

namespace {

using kernels::ProgramOp;

/// kv_idx >= document_start[q_idx]
kernels::Program sameDocumentMask() {
    kernels::ProgramBuilder builder;
    const std::array query = {builder.input(ProgramOp::Query)};
    const std::int32_t starts = builder.capture({"document_start", kernels::ProgramType::Int32, 1, false});
    return builder.finish(builder.binary(ProgramOp::Le, builder.load(starts, query), builder.input(ProgramOp::Key)));
}

/// Tokens from begin to end - 1.
struct TokenRange {
    std::int64_t begin = 0, end = 0;
};

struct PlacedDocument {
    TokenRange own;
    TokenRange prefix; ///< 0 to 0: none
};

std::vector<PlacedDocument> placedDocuments(const DocumentLayout& layout) {
    std::vector<PlacedDocument> out;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < layout.lengths.size(); ++i) {
        const std::int32_t prefix = layout.prefixes.empty() ? -1 : layout.prefixes[i];
        const std::int64_t end = begin + layout.lengths[i];
        out.push_back({{begin, end}, prefix < 0 ? TokenRange{} : out[static_cast<std::size_t>(prefix)].own});
        begin = end;
    }
    return out;
}

/// A number of each token's document.
template <class NumberOf> std::vector<std::int32_t> perToken(const DocumentLayout& layout, const NumberOf& numberOf) {
    std::vector<std::int32_t> out;
    for (const PlacedDocument& document : placedDocuments(layout)) {
        out.insert(out.end(), static_cast<std::size_t>(document.own.end - document.own.begin),
                   static_cast<std::int32_t>(numberOf(document)));
    }
    return out;
}

/// What the queries from begin to end - 1 of one document see. The first keys of later queries lie later.
kernels::SeenKeys seenInside(const PlacedDocument& document, std::int64_t window, std::int64_t begin,
                             std::int64_t end) {
    const auto first = [&](std::int64_t start, std::int64_t position) {
        return window > 0 ? std::max(start, position - window + 1) : start;
    };
    const auto own = [&](std::int64_t query) { return first(document.own.begin, query); };
    const auto ofPrefix = [&](std::int64_t query) {
        return first(document.prefix.begin, document.prefix.end + query - document.own.begin);
    };
    return {{{ofPrefix(begin), document.prefix.end}, {own(begin), end}},
            {{ofPrefix(end - 1), document.prefix.end}, {own(end - 1), begin + 1}}};
}

} // namespace

std::vector<std::int32_t> documentStarts(const std::vector<std::int32_t>& lengths) {
    return perToken({lengths, {}}, [](const PlacedDocument& document) { return document.own.begin; });
}

std::vector<std::int32_t> prefixStarts(const DocumentLayout& layout) {
    return perToken(layout, [](const PlacedDocument& document) { return document.prefix.begin; });
}

std::vector<std::int32_t> prefixEnds(const DocumentLayout& layout) {
    return perToken(layout, [](const PlacedDocument& document) { return document.prefix.end; });
}

/// kv_idx <= q_idx and kv_idx >= document_start, and in the window;
/// or prefix_start <= kv_idx < prefix_end, and the window reaches back over the end of the prefix to it.
kernels::Program sharedPromptMask(std::int64_t window) {
    kernels::ProgramBuilder builder;
    const auto query = builder.input(ProgramOp::Query);
    const auto key = builder.input(ProgramOp::Key);
    const auto captured = [&](const char* name) {
        return builder.load(builder.capture({name, kernels::ProgramType::Int32, 1, false}), std::array{query});
    };
    const auto both = [&](auto a, auto b) { return builder.binary(ProgramOp::And, a, b); };
    const auto start = captured("document_start");
    const auto prefixStart = captured("prefix_start");
    const auto prefixEnd = captured("prefix_end");
    const auto own =
        both(builder.inlined(kernels::slidingWindowMask(window)), builder.binary(ProgramOp::Le, start, key));
    auto ofPrefix =
        both(builder.binary(ProgramOp::Le, prefixStart, key), builder.binary(ProgramOp::Lt, key, prefixEnd));
    if (window > 0) {
        const auto before = builder.binary(ProgramOp::Sub, prefixEnd, key);
        const auto since = builder.binary(ProgramOp::Sub, query, start);
        ofPrefix = both(ofPrefix, builder.binary(ProgramOp::Lt, builder.binary(ProgramOp::Add, before, since),
                                                 builder.constant(window)));
    }
    return builder.finish(builder.binary(ProgramOp::Or, own, ofPrefix));
}

kernels::BlockMask documentBlocks(const std::vector<std::int32_t>& lengths, std::int64_t window) {
    std::vector<std::int64_t> starts;
    std::int64_t tokens = 0;
    for (const std::int32_t length : lengths) {
        starts.push_back(tokens);
        tokens += length;
    }
    return kernels::causalBlockMask(tokens, [&](std::int64_t query) {
        const std::int64_t start = *(std::ranges::upper_bound(starts, query) - 1);
        return window > 0 ? std::max(start, query - window + 1) : start;
    });
}

kernels::BlockMask sharedPromptBlocks(const DocumentLayout& layout, std::int64_t window) {
    const std::vector<PlacedDocument> documents = placedDocuments(layout);
    auto first = documents.begin(); // of those that queries lie in
    return kernels::spanBlockMask(documents.back().own.end, [&](std::int64_t begin, std::int64_t end) {
        while (first->own.end <= begin) {
            ++first;
        }
        kernels::SeenKeys out{{}, {{0, documents.back().own.end}}};
        for (auto document = first; document != documents.end() && document->own.begin < end; ++document) {
            const kernels::SeenKeys seen =
                seenInside(*document, window, std::max(begin, document->own.begin), std::min(end, document->own.end));
            out.some.insert(out.some.end(), seen.some.begin(), seen.some.end());
            out.all = kernels::intersection(out.all, seen.all);
        }
        return out;
    });
}

void DocumentMasks::begin(const std::vector<std::int32_t>& lengths, const std::vector<std::int32_t>& prefixes) {
    DocumentLayout layout{lengths, prefixes};
    if (layout == layout_) {
        return;
    }
    layout_ = std::move(layout);
    for (auto& [window, mask] : masks_) {
        mask.blocks.reset();
    }
}

const FlatAttention& DocumentMasks::of(const DecoderLayer& layer, const DocumentPlaces& places) {
    const std::int64_t window = layer.config.window;
    Mask& mask = masks_[window];
    const bool shares = !places.prefixStarts.empty();
    mask.attention.mask = layer.attentionMask;
    if (shares) {
        if (mask.shared == nullptr) {
            mask.shared = std::make_unique<kernels::KnownProgram>(sharedPromptMask(window));
        }
        mask.attention.mask = mask.shared->bound({{places.starts, places.prefixStarts, places.prefixEnds}});
    } else if (!places.starts.empty()) {
        if (mask.separate == nullptr) {
            mask.separate = std::make_unique<kernels::KnownProgram>(
                kernels::andMasks(kernels::slidingWindowMask(window), sameDocumentMask()));
        }
        mask.attention.mask = mask.separate->bound({{places.starts}});
    }
    if (mask.blocks == nullptr) {
        mask.blocks = std::make_unique<kernels::BlockMask>(shares ? sharedPromptBlocks(layout_, window)
                                                                  : documentBlocks(layout_.lengths, window));
    }
    mask.attention.blocks = mask.blocks.get();
    return mask.attention;
}

} // namespace vitrine::engine
