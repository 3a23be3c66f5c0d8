// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Fixed prompts of a fine-tuning run. The model that is trained answers them before the first step, every so many steps
// and after the last one, so that one sees what training changes. Runs and plans use the same code.

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// A prompt as the option sample_prompts names it.
struct FixedPrompt {
    std::string text; ///< of a conversation: its last message
    std::vector<ChatMessage> messages;
};

/// Reads the prompts of the option: texts, and files of JSON Lines with "prompt" or "messages" in each line. Throws
/// BadInput "FILE: line N: FIELD: what".
std::vector<FixedPrompt> readFixedPrompts(const std::vector<std::string>& items);

/// What the model answered to a prompt after a step.
struct FixedAnswer {
    std::int64_t step = 0;
    std::string prompt, text;
    std::int64_t tokens = 0;
    std::string finish; ///< finishReasonName()
};

class FixedPrompts {
public:
    /// `steps` are those of the run. Throws BadInput for prompts that the model cannot be asked, and where the run
    /// would keep too many answers.
    FixedPrompts(const Run& run, const ModelSource& source, Model& model, std::int64_t steps);

    bool empty() const { return requests_.empty(); }
    std::size_t size() const { return requests_.size(); }
    /// Whether they are answered after this step of the run; 0: before the first one.
    bool due(std::int64_t step) const;
    /// Takes over the answers of the run's part before `step`, as a checkpoint has them. Other prompts' answers are
    /// left out.
    void resume(const nlohmann::json& answers);
    /// All prompts have answers of this step.
    bool answered(std::int64_t step) const;
    /// Lets the model answer, greedily, and gives the memory back. Adds to answers() where the device computes values.
    /// Throws OutOfMemory, Cancelled; then answers() has no answer of this step.
    void answer(std::int64_t step);
    /// Rows with step, prompt, text, tokens and finish_reason, by step.
    nlohmann::json answers() const;

private:
    GenerateReport generate();

    Experiment spec_; ///< as `generate` would answer
    const Run& run_;
    Model& model_;
    std::int64_t every_ = 0, steps_ = 0;
    std::vector<FixedPrompt> prompts_;
    std::vector<GenerateRequest> requests_;
    std::shared_ptr<const Tokenizer> tokenizer_;
    AnswerForm answerForm_ = AnswerForm::Plain;
    std::vector<FixedAnswer> answers_;
};

} // namespace vitrine::engine
