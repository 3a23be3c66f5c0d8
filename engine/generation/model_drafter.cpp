// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/model_drafter.h"

#include <algorithm>

#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

KvCacheOptions withRollBack(KvCacheOptions cache, std::int64_t tokens) {
    cache.rollBackTokens = tokens;
    return cache;
}

} // namespace

ModelDrafter::ModelDrafter(Model& model, const ModelDrafterOptions& options)
    : model_(model), options_(options),
      cache_(model.context(), model.config(), withRollBack(options.cache, options.draftTokens)) {
    requireSpeculation(model.config());
    options_.prefillChunk = prefillChunk(model.context().traits(), options.prefillChunk);
    takePool();
}

/// All of it, before the large model divides the memory that is left.
void ModelDrafter::takePool() {
    for (int group = 0; cache_.book() != nullptr && group < static_cast<int>(cache_.groups().size()); ++group) {
        cache_.requireBacked(group, kvPoolPages(cache_.groups()[static_cast<std::size_t>(group)], cache_.options()));
    }
}

void ModelDrafter::sleep() {
    forgetAll();
    cache_.giveBack();
    model_.dropGraphs();
}

void ModelDrafter::forget(std::int32_t request) {
    if (const auto found = known_.find(request); found != known_.end()) {
        cache_.removeSequence(found->second.sequence);
        known_.erase(found);
    }
}

void ModelDrafter::forgetAll() {
    while (!known_.empty()) {
        forget(known_.begin()->first);
    }
}

void ModelDrafter::draft(std::span<const DraftJob> jobs) {
    std::vector<Drafting> draftings = begin(jobs);
    while (!draftings.empty()) {
        step(draftings);
        std::erase_if(draftings, [](const Drafting& drafting) {
            return static_cast<std::int64_t>(drafting.job.request->draft().size()) == drafting.job.tokens;
        });
    }
    for (const DraftJob& job : jobs) {
        if (const auto found = known_.find(job.request->number()); found != known_.end()) {
            found->second.history = static_cast<std::int64_t>(job.request->history().size());
            found->second.draft.assign(job.request->draft().begin(), job.request->draft().end());
        }
    }
}

/// The requests that get drafts. Their caches hold tokens of their histories only, and not the last one.
std::vector<ModelDrafter::Drafting> ModelDrafter::begin(std::span<const DraftJob> jobs) {
    std::vector<Drafting> draftings;
    for (const DraftJob& job : jobs) {
        const std::int32_t number = job.request->number();
        auto found = known_.find(number);
        if (found == known_.end()) {
            found = known_.emplace(number, Known{cache_.addSequence(), 0, {}}).first;
        }
        Known& known = found->second;
        goBack(known, job.request->history());
        if (makeRoom(job, known.sequence)) {
            draftings.push_back({job, known.sequence, cache_.length(known.sequence)});
        } else {
            forget(number);
        }
    }
    return draftings;
}

void ModelDrafter::goBack(Known& known, std::span<const std::int32_t> history) {
    const std::int64_t held = cache_.length(known.sequence);
    const std::int64_t most = std::min(held, static_cast<std::int64_t>(history.size()) - 1);
    std::int64_t same = std::min(known.history, most);
    while (same < most &&
           history[static_cast<std::size_t>(same)] == known.draft[static_cast<std::size_t>(same - known.history)]) {
        ++same;
    }
    if (same < held) {
        cache_.trim(known.sequence, same);
    }
}

/// For what the request has and its draft, without the last drafted token, which is not fed back.
bool ModelDrafter::makeRoom(const DraftJob& job, int sequence) {
    const std::int64_t length = static_cast<std::int64_t>(job.request->history().size()) + job.tokens - 1;
    const std::int64_t most = model_.config().maxPositions;
    return (most <= 0 || length <= most) &&
           (cache_.book() == nullptr || cache_.book()->grow(sequence, length - cache_.length(sequence)));
}

/// Feeds each drafting what its cache lacks, as far as a step goes, and adds a token to the drafts of those that then
/// have all.
void ModelDrafter::step(std::vector<Drafting>& draftings) {
    StepBatch batch;
    batch.name = "draft";
    batch.index = steps_++;
    std::vector<kernels::SampleParameters> sampling;
    std::vector<ActiveRequest*> drawing;
    std::int64_t room = options_.prefillChunk;
    for (Drafting& drafting : draftings) {
        const std::span<const std::int32_t> all = drafting.job.request->historyAndDraft();
        const auto length = static_cast<std::int64_t>(all.size());
        const std::int64_t count = std::min(length - drafting.next, room);
        if (count == 0) {
            continue;
        }
        StepSequence sequence{drafting.sequence,
                              all.subspan(static_cast<std::size_t>(drafting.next), static_cast<std::size_t>(count)),
                              drafting.next + count == length};
        batch.sequences.push_back(sequence);
        drafting.next += count;
        room -= count;
        if (sequence.wantsLogits) {
            drawing.push_back(drafting.job.request);
            sampling.push_back(drawing.back()->sampling(static_cast<std::int64_t>(drawing.back()->draft().size())));
        }
    }
    batch.sampling = sampling;
    const StepOutput out = model_.step(batch, cache_);
    for (std::size_t row = 0; row < drawing.size(); ++row) {
        drawing[row]->addToDraft(out.ids[row]);
    }
}

} // namespace vitrine::engine
