// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Colours of the map, from the theme's tokens.

#include <algorithm>
#include <cmath>

#include "ui/widgets/block_map/block_map_tile.h"

namespace vitrine::ui {

namespace {

QColor mixed(const QColor& a, const QColor& b, double share) {
    return QColor::fromRgbF(static_cast<float>(a.redF() + (b.redF() - a.redF()) * share),
                            static_cast<float>(a.greenF() + (b.greenF() - a.greenF()) * share),
                            static_cast<float>(a.blueF() + (b.blueF() - a.blueF()) * share));
}

QRgb mixedRgb(QRgb a, QRgb b, double share) {
    return mixed(QColor(a), QColor(b), share).rgb();
}

MapColor plain(const QColor& color) {
    return {color.rgb(), color.rgb(), Hatch::None};
}

/// Black lines at 42 %, as the block map's partial blocks have them.
MapColor hatched(const QColor& fill, Hatch hatch) {
    return {fill.rgb(), mixed(fill, Qt::black, 0.42).rgb(), hatch};
}

MapColor lined(const QColor& fill, const QColor& line, Hatch hatch) {
    return {fill.rgb(), line.rgb(), hatch};
}

} // namespace

MapColors mapColors(const ThemeTokens& t) {
    const auto set = [&](const char* key) {
        const auto found = t.sets.find(QLatin1String(key));
        return found == t.sets.end() ? t.text3 : found->second;
    };
    MapColors colors;
    colors.name = t.name;
    const QColor empty = set("blocks.empty");
    const QColor full = set("blocks.full");
    const QColor partial = set("blocks.partial");
    const QColor rose = set("maskDifference.onlyB");
    colors.canvas = t.canvas.rgb();
    colors.empty = empty.rgb();
    colors.grid = t.line0.rgb();
    colors.bad = t.bad.rgb();
    colors.masked = mixed(empty, t.line2, 0.2).rgb();
    colors.full = plain(full);
    colors.partial = hatched(partial, Hatch::BackDiagonal);
    colors.onlyA = plain(set("maskDifference.onlyA"));
    colors.onlyB = hatched(rose, Hatch::BackDiagonal);
    colors.both = plain(set("maskDifference.same"));
    // From quiet to loud: the first condition of a mask is mostly causality, which blocks half of everything.
    const QColor gray = mixed(empty, t.line2, t.dark ? 0.34 : 0.36);
    const QColor dim = mixed(empty, t.line2, t.dark ? 0.11 : 0.09);
    const QColor wine = mixed(empty, rose, t.dark ? 0.42 : 0.34);
    const QColor ocher = mixed(empty, partial, t.dark ? 0.42 : 0.38);
    const QColor teal = mixed(empty, set("maskDifference.onlyA"), t.dark ? 0.36 : 0.30);
    colors.blockedBy = {plain(dim),
                        plain(gray),
                        lined(wine, mixed(wine, rose, 0.55), Hatch::BackDiagonal),
                        lined(teal, mixed(teal, set("maskDifference.onlyA"), 0.55), Hatch::ForwardDiagonal),
                        lined(ocher, mixed(ocher, partial, 0.55), Hatch::BackDiagonal),
                        lined(gray, mixed(gray, t.text3, 0.45), Hatch::ForwardDiagonal)};
    const QColor light = mixed(full, t.dark ? QColor(Qt::white) : set("maskDifference.onlyA"), t.dark ? 0.42 : 0.5);
    colors.allowedBy = {
        plain(full),
        plain(light),
        lined(set("maskDifference.onlyA"), mixed(set("maskDifference.onlyA"), Qt::black, 0.3), Hatch::BackDiagonal),
        lined(full, mixed(full, Qt::white, 0.35), Hatch::ForwardDiagonal),
        lined(light, mixed(light, Qt::black, 0.35), Hatch::BackDiagonal),
        lined(partial, mixed(partial, Qt::black, 0.35), Hatch::ForwardDiagonal)};
    // The lowest score still differs from what the mask blocks.
    colors.heatLow = mixed(t.canvas, t.accent, 0.14).rgb();
    colors.heatHigh = t.accent.rgb();
    colors.heatNegative = t.compareB.rgb();
    return colors;
}

MapColor maskedColor(const MapColors& colors) {
    return {colors.empty, colors.masked, Hatch::BackDiagonal};
}

QRgb heatColor(const MapColors& colors, const HeatScale& scale, float value) {
    if (std::isnan(value)) {
        return colors.bad;
    }
    if (std::isinf(value) && value < 0) {
        return colors.empty;
    }
    if (scale.signedValues) {
        const double share =
            scale.high <= 0 ? 0 : std::clamp(std::abs(static_cast<double>(value)) / scale.high, 0.0, 1.0);
        return mixedRgb(colors.heatLow, value < 0 ? colors.heatNegative : colors.heatHigh, share);
    }
    const double span = scale.high - scale.low;
    return mixedRgb(colors.heatLow, colors.heatHigh,
                    span <= 0 ? 0.6 : std::clamp((static_cast<double>(value) - scale.low) / span, 0.0, 1.0));
}

} // namespace vitrine::ui
