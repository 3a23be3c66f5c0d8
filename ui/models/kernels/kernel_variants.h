// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which variant answered each op of a run, why, and which others there are: what an A/B on the same experiment chooses
// from. Pure functions; reading kernel packs reads files, so candidates are asked for off the GUI thread or once.

#include <QString>
#include <QStringList>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sessions/session_file.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/kernels/kernel_stats.h"

namespace vitrine::ui {

/// One compiled specialisation of a variant, as metrics["kernels"] gives it.
struct VariantUse {
    QString specialization, origin, reason;
    std::uint64_t calls = 0;
    int registers = 0;
    int spillBytes = 0;
    std::uint64_t sharedBytes = 0, cubinBytes = 0;
};

/// A variant of a family with all its specialisations.
struct UsedVariant {
    QString family, variant, pack, arch;
    std::vector<VariantUse> uses;
    std::vector<std::string> entries; ///< names of its kernels

    QString name() const { return pack + QLatin1Char('/') + variant; }
    VariantUse heaviest() const; ///< sums of calls, the largest of everything else
};

struct Candidate {
    QString family, name; ///< "builtin/portable"; of the CPU "avx2"
    bool used = false;
};

struct VariantList {
    bool cpu = false; ///< SIMD levels of the CPU instead of kernels of a GPU
    std::vector<UsedVariant> used;
    std::vector<Candidate> candidates;
    QString note; ///< a pack that is not there any more, in one sentence

    const UsedVariant* withEntry(const std::string& kernel) const;
    std::vector<Candidate> of(const QString& family) const;
};
using VariantListPtr = std::shared_ptr<const VariantList>;

/// Reads the run's metrics and the manifests of its packs.
VariantListPtr variantList(const sessions::RunInfo& run);

/// Device time of a variant's kernels; nothing where none was recorded. On the CPU the time of all ops.
std::optional<base::TimeNs> variantTime(const UsedVariant& variant, const KernelStats& stats);

/// The run's experiment with another variant of one family, everything else as it was; kernels are recorded.
std::string variantExperiment(const sessions::RunInfo& run, const Candidate& candidate);

/// One side of the table: the variants of a run and what its kernels took.
struct VariantSide {
    VariantListPtr list;
    KernelStatsPtr stats; ///< may be null
};
enum VariantColumn {
    VariantOp,
    VariantName,
    VariantPack,
    VariantReason,
    VariantRegisters,
    VariantShared,
    VariantSpills,
    VariantCubin,
    VariantOrigin,
    VariantCalls,
    VariantTime,
    VariantOther,
    VariantOtherTime,
    VariantDelta
};

/// One row for each variant in use, its specialisations below it; with `b` also B's variant, its time and the delta
/// from A to B. Top rows have the variant's number, from 1, as their key.
FlatTreePtr variantTree(const VariantSide& a, const std::optional<VariantSide>& b);

} // namespace vitrine::ui
