// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What an experiment's options say about chats.

#include <memory>

#include "engine/chat/chat_format.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// The chat format that the options chat_format and chat_template choose for a model; null when none fits it.
/// Throws what makeChatFormat() throws.
std::shared_ptr<const ChatFormat> chosenChatFormat(const Run& run, const ModelSource& source,
                                                   const std::shared_ptr<const Tokenizer>& tokenizer);

/// The options system, date, reasoning_effort, enable_thinking, tools and chat_template_kwargs; unset where the
/// workload does not have them. Throws BadInput for JSON that cannot be read.
ChatOptions chosenChatOptions(const Run& run);

/// Says once what of `options` the model's template never reads.
void warnOfUnreadOptions(const ChatFormat& format, const ChatOptions& options);

} // namespace vitrine::engine
