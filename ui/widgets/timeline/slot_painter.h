// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Pictures of a batch: slots x steps, and a row for each request. Pure functions; their costs are those of the pixels.

#include <optional>
#include <span>
#include <vector>

#include "ui/models/batching/batch_map.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

/// Where another run ends, and what that means: the arrow between both ends.
struct SlotGain {
    base::TimeNs otherEnd = 0; ///< on the axis
    QString text;              ///< "1.65 times sooner"; empty: only the other end is marked
};

struct SlotInput {
    BatchMapPtr map;
    AxisMap axis;
    std::optional<SlotGain> gain;
};

inline constexpr double kSlotsTop = 3;     ///< px above and below the rows
inline constexpr double kTallestSlot = 28; ///< px; more shows nothing more: a lane of few slots is low

/// Rows of slots in a plot of this height, which they fill.
struct SlotRows {
    double top = kSlotsTop, pitch = 13;
    int slotCount = 0;
    double gap() const { return pitch >= 4 ? 1 : 0; }
    QRectF row(int slot, double left, double width) const { return {left, top + slot * pitch, width, pitch - gap()}; }
    int slotAt(double y) const; ///< -1: none
};
SlotRows slotRows(int slotCount, double height);

QImage paintSlots(const SlotInput& input, const PlotFrame& frame, const ThemeTokens& theme);

/// Requests from row `first` on, as many as fit.
struct RequestInput {
    BatchMapPtr map;
    AxisMap axis;
    int first = 0;
    std::optional<std::vector<std::int32_t>> only = {}; ///< the requests that have rows; nothing: all
    QString none = {};                                  ///< said where no request has one
};
/// Those of a request's pieces that columns of pixels show: of many that begin in one column the first and the last,
/// which covers the others. About two for each column at most, whatever there is.
std::vector<RequestPiece> seenPieces(std::span<const RequestPiece> pieces, const AxisColumns& columns);
inline constexpr double kRequestPitch = 9; ///< 8 px and a gap
/// Height of a row: more than kRequestPitch where all of them fit.
double requestPitch(std::size_t requests, double height);
QImage paintRequests(const RequestInput& input, const PlotFrame& frame, const ThemeTokens& theme);

/// Fill and hatch of a state.
CategoryStyle slotStyle(base::SlotState state, const ThemeTokens& theme);
CategoryStyle requestStyle(RequestState state, const ThemeTokens& theme);

} // namespace vitrine::ui
