// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/cache/kv_cache.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <functional>
#include <limits>

#include "base/error.h"

namespace vitrine::engine {
namespace {

/// Page numbers count this many bytes from the lowest page: every allocation starts on such a border.
constexpr std::uint64_t kPageUnit = kernels::kMemoryAlignment;
constexpr std::uint64_t kScalesUnit = 16; ///< scales of a page begin at a multiple of it

std::int64_t ceilDivide(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

std::byte* beginOf(const kernels::Buffer& page) {
    return static_cast<std::byte*>(page.data());
}

std::byte* lowerOf(std::byte* a, std::byte* b) {
    return a == nullptr || std::less<>{}(b, a) ? b : a;
}

/// Pages up to 1 MiB share segments of 2 MiB; larger ones have segments rounded up to 2 MiB. The first size that wastes
/// less than a fiftieth there.
std::int64_t choosePageTokens(std::uint64_t bytesPerToken) {
    constexpr std::uint64_t kShared = std::uint64_t{1} << 20;
    constexpr std::uint64_t kSegment = std::uint64_t{2} << 20;
    for (std::int64_t tokens = 64; tokens <= 512; tokens *= 2) {
        const std::uint64_t bytes = bytesPerToken * static_cast<std::uint64_t>(tokens);
        const std::uint64_t rounded = (bytes + kSegment - 1) / kSegment * kSegment;
        if (bytes <= kShared || (rounded - bytes) * 50 < rounded) {
            return tokens;
        }
    }
    return 256;
}

} // namespace

std::vector<KvGroup> kvGroups(const ModelConfig& config, const KvCacheOptions& options) {
    const bool isStatic = options.kind == KvCacheKind::Static;
    std::vector<KvGroup> groups;
    for (std::size_t layer = 0; layer < config.layers.size(); ++layer) {
        const std::int64_t window = options.slidingSaves ? config.layers[layer].window : 0;
        auto group = std::find_if(groups.begin(), groups.end(), [&](const KvGroup& g) { return g.window == window; });
        if (group == groups.end()) {
            group = groups.insert(groups.end(), KvGroup{window > 0 ? "sliding" : "full", {}, window});
        }
        group->layers.push_back(static_cast<int>(layer));
    }
    for (KvGroup& group : groups) {
        const std::int64_t rows = 2 * static_cast<std::int64_t>(group.layers.size()) * config.kvHeads;
        group.tokenBytes = static_cast<std::uint64_t>(rows) * kernels::kvRowBytes(options.dtype, config.headDim);
        std::int64_t pageTokens = options.pageTokens;
        if (isStatic) {
            pageTokens = options.maxTokens;
        } else if (pageTokens == 0 && options.kind == KvCacheKind::Paged) {
            pageTokens = kPoolPageTokens;
        } else if (pageTokens == 0) {
            pageTokens = choosePageTokens(group.tokenBytes);
        }
        if (group.ring()) {
            // Pages of equal size that hold the ring with the least waste.
            const std::int64_t kept = std::max<std::int64_t>(group.window - 1, 1);
            group.ringPages = isStatic ? 1 : ceilDivide(kept, pageTokens);
            pageTokens = isStatic ? std::min(kept, pageTokens) : ceilDivide(kept, group.ringPages);
        }
        group.pageTokens = pageTokens;
        group.pageBytes = kernels::bytesOf(options.dtype, rows * config.headDim * pageTokens);
        if (kernels::isQuantizedKv(options.dtype)) {
            group.scalesAt = (group.pageBytes + kScalesUnit - 1) / kScalesUnit * kScalesUnit;
            group.pageBytes = group.scalesAt + static_cast<std::uint64_t>(rows * pageTokens) * sizeof(float);
        }
    }
    return groups;
}

std::int64_t kvPoolPages(const KvGroup& group, const KvCacheOptions& options) {
    return group.ring() ? group.ringPages * options.poolSequences : options.poolPages;
}

std::uint64_t kvPoolBytes(std::span<const KvGroup> groups, const KvCacheOptions& options) {
    std::uint64_t total = 0;
    for (const KvGroup& group : groups) {
        total += kernels::alignedBytes(group.pageBytes) * static_cast<std::uint64_t>(kvPoolPages(group, options));
    }
    return total;
}

KvCache::KvCache(kernels::Context& context, const ModelConfig& config, const KvCacheOptions& options)
    : context_(context), options_(options), kvHeads_(config.kvHeads), headDim_(config.headDim) {
    if (options_.pageTokens < 0 || (options_.kind == KvCacheKind::Static && options_.maxTokens < 1)) {
        throw base::Internal("a KV cache needs tokens in a page");
    }
    groups_ = kvGroups(config, options_);
    layerGroup_.resize(config.layers.size());
    layerSlot_.resize(config.layers.size());
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        for (std::size_t slot = 0; slot < groups_[group].layers.size(); ++slot) {
            const auto layer = static_cast<std::size_t>(groups_[group].layers[slot]);
            layerGroup_[layer] = static_cast<int>(group);
            layerSlot_[layer] = static_cast<int>(slot);
        }
    }
    findLowestPages();
    if (options_.kind == KvCacheKind::Paged) {
        makePool();
    }
}

KvCache::~KvCache() = default;

/// Calls `visit(length)` for each live sequence.
template <class Visit> void KvCache::eachLength(Visit visit) const {
    for (int sequence = 0; book_ && sequence < book_->sequences(); ++sequence) {
        if (book_->live(sequence)) {
            visit(book_->length(sequence));
        }
    }
    for (const Sequence& sequence : sequences_) {
        if (sequence.live) {
            visit(sequence.length);
        }
    }
}

KvCache::Sequence& KvCache::at(int sequence) {
    return const_cast<Sequence&>(std::as_const(*this).at(sequence));
}

const KvCache::Sequence& KvCache::at(int sequence) const {
    const auto index = static_cast<std::size_t>(sequence);
    if (sequence < 0 || index >= sequences_.size() || !sequences_[index].live) {
        throw base::Internal(fmt::format("the KV cache has no sequence {}", sequence));
    }
    return sequences_[index];
}

/// Pages that a sequence holds of a group.
std::size_t KvCache::pagesOf(int sequence, int group) const {
    return book_ ? book_->pages(sequence, group).size() : at(sequence).pages[static_cast<std::size_t>(group)].size();
}

const std::byte* KvCache::pageOf(int sequence, int group, std::size_t index) const {
    return book_ ? pageAddress(group, book_->pages(sequence, group)[index])
                 : beginOf(at(sequence).pages[static_cast<std::size_t>(group)][index]);
}

std::int64_t KvCache::pagesFor(const KvGroup& group, std::int64_t tokens) const {
    if (options_.kind == KvCacheKind::Static) {
        return 1;
    }
    const std::int64_t pages = ceilDivide(tokens, group.pageTokens);
    return group.ring() ? std::min(pages, group.ringPages) : pages;
}

void KvCache::growTo(Sequence& sequence, int group, std::int64_t pages) {
    const KvGroup& kind = groups_[static_cast<std::size_t>(group)];
    auto& held = sequence.pages[static_cast<std::size_t>(group)];
    const std::string name = "kv_cache." + kind.name;
    const kernels::Shape shape{static_cast<std::int64_t>(kind.layers.size()), 2, kind.pageTokens, kvHeads_, headDim_};
    while (static_cast<std::int64_t>(held.size()) < pages) {
        held.emplace_back(context_.memory().general(), kind.pageBytes,
                          kernels::Tag{base::MemoryCategory::KvCache, name, options_.dtype, shape});
        lowestPage_[static_cast<std::size_t>(group)] =
            lowerOf(lowestPage_[static_cast<std::size_t>(group)], beginOf(held.back()));
    }
}

int KvCache::addSequence() {
    if (book_) {
        return book_->addSequence();
    }
    auto slot = std::find_if(sequences_.begin(), sequences_.end(), [](const Sequence& s) { return !s.live; });
    if (slot == sequences_.end()) {
        slot = sequences_.emplace(sequences_.end());
    }
    Sequence fresh;
    fresh.live = true;
    fresh.pages.resize(groups_.size());
    if (options_.kind == KvCacheKind::Static) {
        for (std::size_t group = 0; group < groups_.size(); ++group) {
            growTo(fresh, static_cast<int>(group), 1);
        }
    }
    *slot = std::move(fresh);
    return static_cast<int>(slot - sequences_.begin());
}

void KvCache::removeSequence(int sequence) {
    if (book_) {
        book_->removeSequence(sequence);
        report();
        return;
    }
    at(sequence) = Sequence{};
    findLowestPages();
    report();
}

std::int64_t KvCache::length(int sequence) const {
    return book_ ? book_->length(sequence) : at(sequence).length;
}

void KvCache::reserve(std::span<const KvAppend> appends) {
    for (const KvAppend& append : appends) {
        const std::int64_t length = this->length(append.sequence) + append.tokens;
        if (options_.maxTokens > 0 && length > options_.maxTokens) {
            throw base::BadInput(fmt::format("context: {} tokens do not fit the {} that the KV cache was made for",
                                             length, options_.maxTokens));
        }
        if (book_) {
            growPaged(append);
            continue;
        }
        Sequence& sequence = at(append.sequence);
        for (std::size_t group = 0; group < groups_.size(); ++group) {
            growTo(sequence, static_cast<int>(group), pagesFor(groups_[group], length));
        }
    }
    copyShared();
}

std::int64_t KvCache::tableColumns(int group, std::span<const KvAppend> appends) const {
    const KvGroup& kind = groups_[static_cast<std::size_t>(group)];
    std::int64_t pages = std::max<std::int64_t>(1, pagesFor(kind, options_.tableTokens));
    for (const KvAppend& append : appends) {
        pages = std::max(pages, pagesFor(kind, length(append.sequence) + append.tokens));
    }
    const auto rounded = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(pages)));
    // A full ring takes its size from its table, so the table of a ring is never wider than the ring.
    return kind.ring() ? std::min(rounded, kind.ringPages) : rounded;
}

void KvCache::findLowestPages() {
    lowestPage_.assign(groups_.size(), nullptr);
    for (const Sequence& sequence : sequences_) {
        for (std::size_t group = 0; group < sequence.pages.size(); ++group) {
            for (const kernels::Buffer& page : sequence.pages[group]) {
                lowestPage_[group] = lowerOf(lowestPage_[group], beginOf(page));
            }
        }
    }
}

KvTables KvCache::tables(int group, std::span<const KvAppend> appends) const {
    const KvGroup& kind = groups_[static_cast<std::size_t>(group)];
    const auto base = reinterpret_cast<std::uint64_t>(lowestPage_[static_cast<std::size_t>(group)]);
    KvTables out;
    out.columns = tableColumns(group, appends);
    out.pages.reserve(appends.size() * static_cast<std::size_t>(out.columns));
    for (const KvAppend& append : appends) {
        const std::int64_t before = this->length(append.sequence);
        const std::size_t held = pagesOf(append.sequence, group);
        for (std::int64_t column = 0; column < out.columns; ++column) {
            const auto index = static_cast<std::size_t>(column);
            if (index >= held) {
                out.pages.push_back(-1);
                continue;
            }
            const auto address = reinterpret_cast<std::uint64_t>(pageOf(append.sequence, group, index));
            const std::uint64_t number = (address - base) / kPageUnit;
            if (number > std::uint64_t{std::numeric_limits<std::int32_t>::max()}) {
                throw base::Internal("pages of the KV cache lie too far apart for their table");
            }
            out.pages.push_back(static_cast<std::int32_t>(number));
        }
        // A ring is read before the step's tokens replace older ones; the other caches hold them already.
        const std::int64_t after = before + append.tokens;
        const std::int64_t length = kind.ring() ? std::min(before, kind.window - 1) : after;
        out.first.push_back(kind.ring() ? static_cast<std::int32_t>(before - length) : 0);
        out.lengths.push_back(static_cast<std::int32_t>(length));
        if (kind.ring()) {
            const std::int64_t kept = std::min(after, kind.window - 1);
            out.firstAfter.push_back(static_cast<std::int32_t>(after - kept));
            out.lengthsAfter.push_back(static_cast<std::int32_t>(kept));
        }
        out.totalTokens += length;
        out.olderTokens += append.tokens > 1 ? length - (kind.ring() ? 0 : append.tokens) : 0;
    }
    return out;
}

kernels::KvView KvCache::layerView(int layer) const {
    const int group = groupOf(layer);
    const KvGroup& kind = groups_[static_cast<std::size_t>(group)];
    const auto elementBytes = static_cast<std::int64_t>(kernels::bytesOf(options_.dtype, 1));
    const std::int64_t block = kind.pageTokens * kvHeads_ * headDim_ * elementBytes;
    const std::int64_t slot = layerSlot_[static_cast<std::size_t>(layer)];
    std::byte* base = lowestPage_[static_cast<std::size_t>(group)];

    kernels::KvView view;
    view.ring = kind.ring();
    for (int half = 0; half < 2; ++half) {
        kernels::TensorView& tensor = half == 0 ? view.keys : view.values;
        tensor.data = base + (2 * slot + half) * block;
        tensor.dtype = options_.dtype;
        tensor.shape = kernels::Shape{std::numeric_limits<std::int32_t>::max(), kind.pageTokens, kvHeads_, headDim_};
        tensor.rowStride = static_cast<std::int64_t>(kPageUnit) / elementBytes;
        if (kernels::isQuantizedKv(options_.dtype)) {
            kernels::TensorView& scales = half == 0 ? view.keyScales : view.valueScales;
            const std::int64_t scaleBlock = kind.pageTokens * kvHeads_ * static_cast<std::int64_t>(sizeof(float));
            scales.data = base + kind.scalesAt + (2 * slot + half) * scaleBlock;
            scales.dtype = kernels::DType::F32;
            scales.shape = kernels::Shape{tensor.shape[0], kvHeads_, kind.pageTokens};
            scales.rowStride = static_cast<std::int64_t>(kPageUnit / sizeof(float));
        }
    }
    return view;
}

void KvCache::commit(std::span<const KvAppend> appends) {
    for (const KvAppend& append : appends) {
        if (append.keep && book_) {
            book_->commit(append.sequence, append.tokens);
        } else if (append.keep) {
            at(append.sequence).length += append.tokens;
        }
    }
    report();
}

void KvCache::report() {
    reported_.resize(groups_.size());
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        const std::uint64_t held = bytes(static_cast<int>(group));
        if (reported_[group] != held) {
            reported_[group] = held;
            context_.tracer().counter("kv_bytes." + groups_[group].name, static_cast<double>(held));
        }
    }
    context_.tracer().counter("kv_tokens", static_cast<double>(tokens()));
    if (book_ && context_.tracer().level() != kernels::ProfileLevel::Off) {
        const base::TimeNs time = context_.tracer().now();
        for (base::KvPageEvent& change : book_->takeChanges()) {
            change.time = time;
            context_.tracer().kvPage(change);
        }
    }
}

std::int64_t KvCache::roomBeforeGrowth(std::span<const int> sequences) const {
    std::int64_t room = std::numeric_limits<std::int64_t>::max();
    for (const int number : sequences) {
        for (std::size_t group = 0; group < groups_.size(); ++group) {
            const KvGroup& kind = groups_[group];
            const auto held = static_cast<std::int64_t>(pagesOf(number, static_cast<int>(group)));
            const bool grows = options_.kind != KvCacheKind::Static && !(kind.ring() && held == kind.ringPages);
            if (grows) {
                room = std::min(room, held * kind.pageTokens - length(number));
            }
        }
    }
    return room;
}

void KvCache::trim(int sequence, std::int64_t length) {
    const std::int64_t before = this->length(sequence);
    if (length < 0 || length > before) {
        throw base::Internal("a cache is trimmed to fewer tokens than it has");
    }
    for (const KvGroup& group : groups_) {
        if (group.ring() && length < before && before > group.window - 1) {
            throw base::Unsupported(
                "KV cache: a sliding layer has dropped tokens and cannot be rolled back; generate again");
        }
    }
    if (book_) {
        book_->trim(sequence, length);
        report();
        return;
    }
    Sequence& kept = at(sequence);
    kept.length = length;
    if (options_.kind == KvCacheKind::Dynamic) {
        for (std::size_t group = 0; group < groups_.size(); ++group) {
            kept.pages[group].resize(static_cast<std::size_t>(pagesFor(groups_[group], length)));
        }
    }
    findLowestPages();
    report();
}

std::uint64_t KvCache::bytes(int group) const {
    if (book_) {
        return static_cast<std::uint64_t>(book_->counts(group).used) *
               groups_[static_cast<std::size_t>(group)].pageBytes;
    }
    std::uint64_t total = 0;
    for (const Sequence& sequence : sequences_) {
        if (sequence.live) {
            total += sequence.pages[static_cast<std::size_t>(group)].size() *
                     groups_[static_cast<std::size_t>(group)].pageBytes;
        }
    }
    return total;
}

std::uint64_t KvCache::bytes() const {
    std::uint64_t total = 0;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        total += bytes(static_cast<int>(group));
    }
    return total;
}

std::uint64_t KvCache::usedBytes() const {
    std::uint64_t bytes = 0;
    eachLength([&](std::int64_t length) {
        for (const KvGroup& group : groups_) {
            const std::int64_t kept = group.ring() ? std::min(length, group.window - 1) : length;
            bytes += static_cast<std::uint64_t>(kept) * group.tokenBytes;
        }
    });
    return bytes;
}

std::int64_t KvCache::tokens() const {
    std::int64_t total = 0;
    eachLength([&](std::int64_t length) { total += length; });
    return total;
}

} // namespace vitrine::engine
