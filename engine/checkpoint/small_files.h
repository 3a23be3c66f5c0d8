// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The small files of a model folder: configs and templates, read as a whole.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace vitrine::engine {

/// The folder of named chat templates inside a model's folder.
inline constexpr const char* kTemplateFolder = "additional_chat_templates";

/// Whether a file that a model may have is there. Throws BadInput for a name that is taken by something else: reading a
/// pipe could wait for ever, and passing over a link to nothing would hide half a download.
bool hasFile(const std::filesystem::path& path);

/// The text of a file of at most 16 MiB. Throws BadInput "FILE: what".
std::string readSmallFile(const std::filesystem::path& path);

/// JSON by the strict rules of base/strict_json.h, from a text that stands in `path`, or from the file itself.
nlohmann::json parseSmallText(const std::string& text, const std::filesystem::path& path);
nlohmann::json parseSmallFile(const std::filesystem::path& path);

} // namespace vitrine::engine
