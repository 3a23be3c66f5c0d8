// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/tied_head.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "base/log.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using Place = Checkpoint::Location;

constexpr std::int64_t kPieceElements = std::int64_t{1} << 20;

/// Elements of a tensor, a piece at a time.
class PieceReader {
public:
    explicit PieceReader(const Place& place)
        : place_(place), elementBytes_(kernels::bytesOf(place.entry->dtype, 1)),
          bytes_(static_cast<std::size_t>(kPieceElements) * elementBytes_) {}

    std::span<const std::byte> read(std::int64_t first, std::int64_t count) {
        const std::uint64_t bytes = static_cast<std::uint64_t>(count) * elementBytes_;
        place_.file->read(*place_.entry, static_cast<std::uint64_t>(first) * elementBytes_, bytes_.data(), bytes);
        return std::span(bytes_).first(bytes);
    }
    std::vector<float> floats(std::int64_t first, std::int64_t count) {
        const std::span<const std::byte> piece = read(first, count);
        std::vector<float> out(static_cast<std::size_t>(count));
        kernels::loadFloats(place_.entry->dtype, piece.data(), 0, count, out.data());
        return out;
    }

private:
    const Place& place_;
    std::uint64_t elementBytes_;
    std::vector<std::byte> bytes_;
};

bool readSameValues(const Place& a, const Place& b) {
    if (a.entry->shape != b.entry->shape || !kernels::isFloat(a.entry->dtype) || !kernels::isFloat(b.entry->dtype)) {
        return false;
    }
    const bool sameType = a.entry->dtype == b.entry->dtype;
    const auto elements = static_cast<std::int64_t>(a.entry->bytes / kernels::bytesOf(a.entry->dtype, 1));
    PieceReader first(a);
    PieceReader second(b);
    for (std::int64_t done = 0; done < elements; done += kPieceElements) {
        const std::int64_t count = std::min(kPieceElements, elements - done);
        const bool same = sameType ? std::ranges::equal(first.read(done, count), second.read(done, count))
                                   : first.floats(done, count) == second.floats(done, count);
        if (!same) {
            return false;
        }
    }
    return true;
}

std::string placeText(const Place& place) {
    return fmt::format("{} {} {} {}", place.file->path(), place.file->identity(), place.entry->offset,
                       place.entry->bytes);
}

/// Models are opened again and again: by a form, a plan and a run.
bool sameValues(const Place& a, const Place& b) {
    static std::mutex mutex;
    static std::map<std::string, bool> known;
    const std::string key = placeText(a) + "\n" + placeText(b);
    {
        const std::scoped_lock lock(mutex);
        if (const auto found = known.find(key); found != known.end()) {
            return found->second;
        }
    }
    const bool same = readSameValues(a, b);
    const std::scoped_lock lock(mutex);
    known[key] = same;
    return same;
}

} // namespace

void untieOwnHead(ModelConfig& config, const Checkpoint& checkpoint) {
    const Place* head = config.tiedEmbeddings ? checkpoint.find("lm_head.weight") : nullptr;
    const Place* embedding = findModelTensor(checkpoint, "model.embed_tokens.weight");
    if (head == nullptr || embedding == nullptr || head == embedding || sameValues(*head, *embedding)) {
        return;
    }
    config.tiedEmbeddings = false;
    base::logWarning(
        fmt::format("{}: lm_head.weight: differs from the embedding, though tie_word_embeddings is true in "
                    "config.json; the stored head is used",
                    head->file->path()));
}

} // namespace vitrine::engine
