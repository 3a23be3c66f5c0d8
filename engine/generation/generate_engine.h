// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The step engine for requests that begin together. First it reads the prompts in prefill steps of limited size, one
// prompt after the other. Then every request that has not ended gets one token in each decode step.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/generation/step_engine.h"

namespace vitrine::engine {

class GenerateEngine final : private StepEngine {
public:
    /// The model, the report and the callback must outlive the engine. Throws BadInput for a prompt without tokens.
    GenerateEngine(Model& model, const std::shared_ptr<const Tokenizer>& tokenizer, const GenerateOptions& options,
                   std::vector<GenerateRequest> requests, GenerateReport& report, const TokenCallback& onToken);
    ~GenerateEngine() override { drop(); }
    GenerateEngine(const GenerateEngine&) = delete; // steps under way refer to it
    GenerateEngine& operator=(const GenerateEngine&) = delete;

    /// Generates all answers. Call it once. When it throws, the report holds what was done until then. A request that
    /// had not ended has the finish reason Cancelled, OutOfMemory or Failed.
    void run();

private:
    struct Row : ActiveRequest {
        using ActiveRequest::ActiveRequest;

        int sequence = -1;          ///< its number in the cache; -1: not in the cache
        std::int64_t prefilled = 0; ///< tokens of its prompt that were scheduled
    };

    ActiveRequest* unended(std::int32_t request) const override;
    std::int32_t topLogprobsOf(const ActiveRequest&) const override { return options_.topLogprobs; }
    void broken(ActiveRequest& request, const PendingStep& pending) override;
    bool lives(const ScheduledRow& scheduled) const override { return unended(scheduled.request) != nullptr; }
    void complete(PendingStep& pending) override;
    bool launch(const PendingStep& pending) override;
    void ran(const PendingStep&) override {}
    void entered(const PendingStep& pending) override;
    void landed(const PendingStep& pending, base::TimeNs begin, std::int64_t tokens) override;
    void accept(ActiveRequest& request, std::int32_t id, float logprob,
                std::vector<std::pair<std::int32_t, float>> top) override;
    void rollBack(ActiveRequest& request, std::int64_t rejected) override;

    KvCacheOptions cacheOptions() const;
    void abandon(FinishReason reason);
    void prefill();
    void decode();
    void draftAll();
    void advanceTo(StepSchedule schedule);
    StepSchedule nextPrefill();
    StepSchedule nextDecode() const;
    std::vector<Row*> liveRows() const;
    void jump(double stepSeconds);
    double seconds() const { return static_cast<double>(now()) * 1e-9; }
    // Compiles kernels before the first step (generate_engine_kernels.cpp):
    void prepare(const KvCacheOptions& cache);
    std::vector<std::vector<Row*>> decodeBatches() const;

    GenerateOptions options_;
    GenerateReport& report_;
    const TokenCallback& onToken_;
    std::int64_t chunk_; ///< tokens of one prefill step
    std::vector<std::unique_ptr<Row>> rows_;
    std::int64_t decodeIndex_ = 0;
    double decodeBegin_ = 0;
};

} // namespace vitrine::engine
