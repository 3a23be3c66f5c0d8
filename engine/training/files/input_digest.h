// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tells whether a training that goes on reads what it read before. Digests are SHA-256 as 64 hexadecimal digits; empty:
// there is no regular file to read. All functions throw Cancelled.

#include <string>

#include "base/stop.h"
#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {

/// Of all bytes of a file.
std::string fileDigest(const std::string& path, const base::StopToken& stop);
/// Of a JSON text; spaces and the order of members do not count.
std::string jsonDigest(const std::string& text);
/// Of the files with a model's weights, by their sizes and contents, not by their names. Of more than 64 MiB, pieces of
/// 64 KiB are read that lie evenly over each file: other weights are seen, a change of a few bytes may not be.
std::string weightsDigest(const ModelSource& source, const base::StopToken& stop);
/// Of the two files of an adapter, the weights as above.
std::string adapterDigest(const std::string& folder, const base::StopToken& stop);

} // namespace vitrine::engine
