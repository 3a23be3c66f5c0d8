// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/memory_groups.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <map>
#include <set>

#include "kernels/core/dtype.h"
#include "kernels/formats/weight_formats.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::profiler {

namespace {

using base::MemoryCategory;

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

bool anyOf(std::string_view text, std::initializer_list<std::string_view> parts) {
    return std::ranges::any_of(parts, [text](std::string_view part) { return contains(text, part); });
}

/// The format of a packed weight, or the type of a dense one: "INT4, groups of 128", "BF16".
std::string typeWord(const RunTimeline& timeline, const AllocationRow& row) {
    const auto type = static_cast<kernels::DType>(row.dtype);
    std::string format = formatText(timeline, row);
    return !format.empty() || type == kernels::DType::None ? format : std::string(kernels::safetensorsName(type));
}

/// The blocks of one part before it has its final name.
struct Part {
    std::string word;
    std::uint64_t bytes = 0;
    std::vector<std::size_t> rows;
    std::set<std::int32_t> layers, steps;
    std::optional<MemoryCategory> category;
    bool sameCategory = true;
    bool weights = false;
};

std::string plural(const std::string& word) {
    return word.ends_with('s') ? word : word + "s";
}

/// "layer inputs 0 to 23", "hidden, layer 3", "logits, step 3"
std::string partName(const Part& part) {
    if (part.weights) {
        return part.word;
    }
    const auto layers = static_cast<std::int32_t>(part.layers.size());
    if (layers > 1 && *part.layers.rbegin() - *part.layers.begin() + 1 == layers) {
        return fmt::format("{} {} to {}", plural(part.word), *part.layers.begin(), *part.layers.rbegin());
    }
    if (layers > 1) {
        return fmt::format("{} of {} layers", plural(part.word), layers);
    }
    if (layers == 1) {
        return fmt::format("{}, layer {}", part.word, *part.layers.begin());
    }
    if (part.steps.size() == 1) {
        return fmt::format("{}, step {}", part.word, *part.steps.begin());
    }
    return part.word;
}

struct GroupMembers {
    std::uint64_t bytes = 0;
    base::CategoryBytes byCategory{};
    std::map<std::string, Part> parts;
};

class Grouper {
public:
    Grouper(const RunTimeline& timeline, GroupBy by)
        : timeline_(timeline), places_(timeline), grouping_(timeline, by), by_(by) {}

    void add(std::size_t index) {
        const AllocationRow row = timeline_.memory().allocations()[index];
        const std::string_view name = timeline_.text(row.name);
        const ScopePlace place = places_.of(row.scope);
        const std::int32_t named = layerInName(name);
        const std::int32_t layer = named >= 0 ? named : place.layer;
        GroupMembers& group = groups_[grouping_.name(grouping_.groupOf(row))];
        const bool weights = row.category == MemoryCategory::Weights;
        const std::string word = weights ? weightWord(row, name) : wordFor(row, name, place);
        Part& part = group.parts[word];
        part.word = word;
        part.weights = weights;
        part.bytes += row.bytes;
        part.rows.push_back(index);
        if (layer >= 0) {
            part.layers.insert(layer);
        }
        if (row.category == MemoryCategory::Logits && place.step >= 0) {
            part.steps.insert(place.step);
        }
        part.sameCategory = part.sameCategory && (!part.category || *part.category == row.category);
        part.category = row.category;
        addBytes(group, static_cast<std::size_t>(row.category), row.bytes);
        named_[static_cast<std::size_t>(row.category)] += row.bytes;
    }

    /// Closes the sum to `split`: the context and libraries are seen as a whole only, and so is everything until a
    /// session's events have been read.
    void close(const base::CategoryBytes& split) {
        for (std::size_t i = 0; i < split.size(); ++i) {
            if (split[i] > named_[i]) {
                const auto category = by_ == GroupBy::Category ? static_cast<MemoryCategory>(i) : kUnknown;
                addBytes(groups_[std::string(base::categoryName(category))], i, split[i] - named_[i]);
            }
        }
    }

    MemoryGroup finish() const {
        MemoryGroup root;
        root.name = root.kind = "total";
        root.bytes = total_;
        root.share = total_ > 0 ? 1 : 0;
        for (const auto& [name, parts] : groups_) {
            root.children.push_back(groupOf(name, parts));
            root.blocks += root.children.back().blocks;
        }
        sortBySize(root.children);
        return root;
    }

private:
    static constexpr MemoryCategory kUnknown = MemoryCategory::Untracked;

    static void sortBySize(std::vector<MemoryGroup>& groups) {
        std::ranges::stable_sort(groups, std::greater(), &MemoryGroup::bytes);
    }

    void addBytes(GroupMembers& group, std::size_t category, std::uint64_t bytes) {
        group.bytes += bytes;
        group.byCategory[category] += bytes;
        total_ += bytes;
    }

    double shareOf(std::uint64_t bytes) const {
        return total_ > 0 ? static_cast<double>(bytes) / static_cast<double>(total_) : 0;
    }

    MemoryGroup groupOf(const std::string& name, const GroupMembers& parts) const {
        MemoryGroup group;
        group.name = group.kind = name;
        group.bytes = parts.bytes;
        group.share = shareOf(parts.bytes);
        const auto most = std::ranges::max_element(parts.byCategory);
        group.most = static_cast<MemoryCategory>(most - parts.byCategory.begin());
        if (*most == parts.bytes) {
            group.category = group.most;
        }
        for (const auto& [word, part] : parts.parts) {
            MemoryGroup child;
            child.name = partName(part);
            child.kind = word;
            child.bytes = part.bytes;
            child.blocks = part.rows.size();
            child.share = shareOf(part.bytes);
            child.rows = part.rows;
            child.most = part.category.value_or(MemoryCategory::Other);
            if (part.sameCategory) {
                child.category = part.category;
            }
            group.blocks += child.blocks;
            group.children.push_back(std::move(child));
        }
        sortBySize(group.children);
        return group;
    }

    /// The part and, where its weights are packed, their format: "experts, BF16", "attention, INT4, groups of 128".
    std::string weightWord(const AllocationRow& row, std::string_view name) const {
        std::string word = weightPart(name, typeWord(timeline_, row));
        const std::string format = formatText(timeline_, row);
        return format.empty() || contains(word, format) ? word : word + ", " + format;
    }

    std::string wordFor(const AllocationRow& row, std::string_view name, const ScopePlace& place) const {
        if (row.category == MemoryCategory::KvCache && anyOf(name, {"sliding"})) {
            return "KV of sliding layers";
        }
        if (row.category == MemoryCategory::KvCache && anyOf(name, {"full"})) {
            return "KV of full layers";
        }
        std::string word = plainName(name);
        if (word.empty()) {
            word = plainName(timeline_.text(place.op));
        }
        return word.empty() ? "unnamed" : word;
    }

    const RunTimeline& timeline_;
    ScopePlaces places_;
    Grouping grouping_;
    GroupBy by_;
    std::uint64_t total_ = 0;
    base::CategoryBytes named_{};
    std::map<std::string, GroupMembers> groups_;
};

MemoryGroup groupRows(const RunTimeline& timeline, const std::vector<std::size_t>& rows,
                      const base::CategoryBytes& split, GroupBy by) {
    Grouper grouper(timeline, by);
    for (const std::size_t row : rows) {
        grouper.add(row);
    }
    grouper.close(split);
    return grouper.finish();
}

} // namespace

std::string formatText(const RunTimeline& timeline, const AllocationRow& row) {
    if (row.format != 0) {
        return std::string(timeline.text(row.format));
    }
    // Runs of earlier versions do not say it: there names and types tell some formats.
    const kernels::PackedFormat* packed =
        row.category == MemoryCategory::Weights
            ? kernels::packedFormatOf(static_cast<kernels::DType>(row.dtype), timeline.text(row.name))
            : nullptr;
    return packed != nullptr ? std::string(packed->title) : std::string();
}

std::string weightPart(std::string_view tensor, std::string_view type) {
    if (anyOf(tensor, {"lora_A", "lora_B", "lora_a", "lora_b"})) {
        return "LoRA A and B";
    }
    if (anyOf(tensor, {"embed_tokens", "lm_head", "embedding"})) {
        return "embedding, lm_head";
    }
    if (anyOf(tensor, {"experts"})) {
        const bool bias = tensor.ends_with("bias");
        return bias || type.empty() ? "experts" + std::string(bias ? ", biases" : "") : "experts, " + std::string(type);
    }
    if (anyOf(tensor, {"router", "mlp.gate."})) {
        return "router";
    }
    if (anyOf(tensor, {"norm"}) && !anyOf(tensor, {"q_norm", "k_norm"})) {
        return "norms";
    }
    if (anyOf(tensor, {"attn", "attention", "sinks"})) {
        return "attention";
    }
    if (anyOf(tensor, {"mlp"})) {
        return "dense MLP";
    }
    return "other weights";
}

std::string plainName(std::string_view tensor) {
    std::string out;
    for (std::size_t at = 0; at <= tensor.size();) {
        const std::size_t dot = std::min(tensor.find('.', at), tensor.size());
        const std::string_view part = tensor.substr(at, dot - at);
        const bool number =
            !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
        if (!number && !part.empty() && part != "model" && part != "layers" && part != "weight") {
            out += out.empty() ? "" : " ";
            out += part;
        }
        at = dot + 1;
    }
    std::ranges::replace(out, '_', ' ');
    return out;
}

std::size_t Grouping::intern(std::string name) {
    const auto [found, fresh] = byName_.try_emplace(std::move(name), names_.size());
    if (fresh) {
        names_.push_back(found->first);
    }
    return found->second;
}

std::string scratchOwner(std::string_view tensor) {
    constexpr std::string_view kScratch = ".scratch";
    return tensor.ends_with(kScratch) ? std::string(tensor.substr(0, tensor.size() - kScratch.size())) : std::string();
}

std::string Grouping::nameOf(const AllocationRow& row) {
    const std::string_view tensor = timeline_.text(row.name);
    const ScopePlace place = places_.of(row.scope);
    switch (by_) {
    case GroupBy::Category:
        return std::string(base::categoryName(row.category));
    case GroupBy::Layer: {
        const std::int32_t named = layerInName(tensor);
        const std::int32_t layer = named >= 0 ? named : place.layer;
        return layer >= 0 ? fmt::format("layer {}", layer) : "outside of layers";
    }
    case GroupBy::Op: {
        if (std::string owner = place.op == 0 ? scratchOwner(tensor) : std::string(); !owner.empty()) {
            return owner;
        }
        const std::uint32_t name = place.op != 0 ? place.op : place.phase;
        return name != 0 ? std::string(timeline_.text(name)) : "outside of ops";
    }
    case GroupBy::Dtype:
        break;
    }
    if (row.format != 0) {
        return std::string(timeline_.text(row.format));
    }
    const auto type = static_cast<kernels::DType>(row.dtype);
    return type == kernels::DType::None ? "bytes" : std::string(kernels::dtypeName(type));
}

std::size_t Grouping::groupOf(const AllocationRow& row) {
    // A group by layer or op depends on the scope and on the name: both fit one key.
    const std::uint64_t key = by_ == GroupBy::Category ? static_cast<std::uint64_t>(row.category)
                              : by_ == GroupBy::Dtype  ? std::uint64_t{row.format} << 8 | row.dtype
                                                       : row.scope * 0x9E3779B97F4A7C15ULL ^ row.name;
    if (const auto found = byKey_.find(key); found != byKey_.end()) {
        return found->second;
    }
    const std::size_t group = intern(nameOf(row));
    byKey_.emplace(key, group);
    return group;
}

MemoryGroup groupAlive(const RunTimeline& timeline, base::TimeNs time, GroupBy by) {
    return groupRows(timeline, timeline.memory().aliveAt(time), timeline.memory().at(time), by);
}

MemoryGroup groupAliveAtEvent(const RunTimeline& timeline, std::uint64_t count, GroupBy by) {
    return groupRows(timeline, timeline.memory().aliveAtEvent(count), timeline.memory().atEvent(count), by);
}

} // namespace vitrine::profiler
