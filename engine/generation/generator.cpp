// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/generator.h"

#include "engine/generation/generate_engine.h"

namespace vitrine::engine {

Generator::Generator(Model& model, std::shared_ptr<const Tokenizer> tokenizer, const GenerateOptions& options)
    : model_(model), tokenizer_(std::move(tokenizer)), options_(options) {}

void Generator::run(std::vector<GenerateRequest> requests, GenerateReport& report, const TokenCallback& onToken) {
    GenerateEngine(model_, tokenizer_, options_, std::move(requests), report, onToken).run();
}

} // namespace vitrine::engine
