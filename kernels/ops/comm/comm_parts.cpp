// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/comm_parts.h"

#include <algorithm>
#include <vector>

#include "kernels/context/meta_context.h"

namespace vitrine::kernels {

void checkCollective(const OpCheck& rule, const Communicator* communicator, const TensorView& x,
                     std::string_view field) {
    rule.require(communicator != nullptr, "communicator", "there is none");
    rule.present(x, field);
    rule.contiguous(x, field);
}

void checkPart(const OpCheck& rule, const Communicator* communicator, const TensorView& part,
               std::string_view partField, const TensorView& whole, std::string_view wholeField, int axis) {
    checkCollective(rule, communicator, part, partField);
    checkCollective(rule, communicator, whole, wholeField);
    rule.require(axis == 0 || (axis == 1 && whole.shape.rank() == 2), "axis", "it is not 0, or 1 of a matrix");
    rule.dtype(part, partField, whole.dtype);
    bool fits = part.shape.rank() == whole.shape.rank();
    for (int dim = 0; fits && dim < whole.shape.rank(); ++dim) {
        const std::int64_t expected =
            dim == axis ? rankShare(whole.shape[dim], communicator->rank(), communicator->size()).count()
                        : whole.shape[dim];
        fits = part.shape[dim] == expected;
    }
    rule.require(fits, partField, "it is not this rank's part");
    rule.disjoint(part, partField, whole, wholeField);
}

Cost collectiveCost(const Communicator& communicator, std::uint64_t read, std::uint64_t written,
                    std::uint64_t linkBytes) {
    Cost cost;
    cost.bytesRead = read;
    cost.bytesWritten = written;
    cost.linkBytes = linkBytes;
    cost.exchanges = communicator.size() > 1 ? 1 : 0;
    cost.ranks = communicator.size();
    return cost;
}

std::uint64_t bytesOfOthers(std::uint64_t bytes, const Communicator& communicator) {
    const auto ranks = static_cast<std::uint64_t>(communicator.size());
    return bytes - bytes / ranks;
}

bool sumsInScratch(const DeviceTraits& traits) {
    return !traits.features.kernelScratch;
}

void joinRanks(MetaContext& context, std::string_view op, Communicator& communicator) {
    const base::TimeNs mine = context.opsEnd();
    const auto ranks = static_cast<std::size_t>(communicator.size());
    std::vector<base::TimeNs> ends(ranks, mine);
    const std::vector<SentBytes> sends(ranks, {reinterpret_cast<const std::byte*>(&mine), sizeof(mine)});
    std::vector<ReceivedBytes> receives;
    for (base::TimeNs& end : ends) {
        receives.push_back({reinterpret_cast<std::byte*>(&end), sizeof(end)});
    }
    communicator.exchange(op, sends, receives);
    context.holdOps(*std::ranges::max_element(ends));
}

} // namespace vitrine::kernels
