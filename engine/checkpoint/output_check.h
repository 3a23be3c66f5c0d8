// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Checks the files that a command is about to write, before anything is computed. Pure but for looking at files.

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/output_file.h"

namespace vitrine::engine {

/// A file or folder with the name of the option that gave it.
struct NamedFile {
    std::string_view option;
    std::string path; ///< empty: not given
};

// safetensors files of results. Their metadata say what made them, so that no weights are taken for one of them.
extern const base::OutputKind kLogitsOutput;
extern const base::OutputKind kAttentionOutput;
extern const base::OutputKind kMaskArraysOutput;
extern const base::OutputKind kGradientsOutput;
extern const base::OutputKind kRolloutsOutput;
extern const base::OutputKind kScoresOutput;
/// The metadata that make a file one of `kind`.
std::map<std::string, std::string> madeBy(const base::OutputKind& kind);

/// Throws BadInput "OPTION: what" or "PATH: what" when `output` is one of `others`, when another kind of file is there,
/// or when it cannot be written. Nothing for an output that is not given.
void checkOutputFile(const NamedFile& output, const base::OutputKind& kind, std::span<const NamedFile> others);

/// The same for a folder: it may be none of `others`, and no file in it may be a file of theirs by another name.
void checkOutputFolder(const NamedFile& output, std::span<const NamedFile> others);

/// Whether a training that goes on from `resume`, a checkpoint or the folder that has it, goes on in `folder`.
bool goesOnIn(const std::string& resume, const std::string& folder);

/// Throws BadInput when the folder holds a model, an adapter or checkpoints of a training. The paths `leftOvers` in it
/// do not count.
void requireNoTraining(const NamedFile& folder, std::span<const std::string> leftOvers);

} // namespace vitrine::engine
