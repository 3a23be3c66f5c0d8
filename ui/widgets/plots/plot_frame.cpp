// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/plot_frame.h"

#include <algorithm>
#include <cmath>

namespace vitrine::ui {

QImage PlotFrame::canvas(const QColor& fill) const {
    const QSize pixels(std::max(1, static_cast<int>(std::lround(size.width() * dpr))),
                       std::max(1, static_cast<int>(std::lround(size.height() * dpr))));
    QImage image(pixels, QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(dpr);
    image.fill(fill);
    return image;
}

ByteScale byteScale(std::uint64_t top, double height, int lines) {
    ByteScale scale;
    scale.grid = byteGrid(top, lines);
    scale.height = height;
    // A little air above the highest value, so that its label and its 1 px line are inside.
    scale.top = static_cast<std::uint64_t>(static_cast<double>(std::max<std::uint64_t>(top, 4)) * 1.05);
    return scale;
}

void drawByteScale(QPainter& painter, const PlotFrame& frame, const ByteScale& scale, const ThemeTokens& theme) {
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const QRectF plot = frame.plot();
    const std::uint64_t step = scale.grid.step;
    const std::uint64_t highest = scale.top / step * step;
    for (std::uint64_t value = 0; value <= highest; value += step) {
        const double y = std::floor(plot.top() + scale.y(static_cast<double>(value)));
        hairline(painter, plot.left(), plot.right(), std::min(y, plot.bottom() - 1),
                 value == 0 ? theme.line1 : theme.line0);
        const double amount = static_cast<double>(value) / static_cast<double>(scale.grid.unit);
        const int decimals = static_cast<double>(step) / static_cast<double>(scale.grid.unit) < 1 ? 1 : 0;
        QString text = QString::number(amount, 'f', value == 0 ? 0 : decimals);
        if (value == highest) {
            text += QStringLiteral("\u00A0") + QString::fromLatin1(scale.grid.unitName);
        }
        // The lowest and the highest label stay inside the lane.
        const double middle = std::clamp(y, plot.top() + 7, plot.bottom() - 7);
        drawText(painter, QRectF(0, middle - 8, frame.gutter - 8, 16), Qt::AlignRight | Qt::AlignVCenter, text,
                 theme.text3, font);
        if (value > UINT64_MAX - step) {
            break;
        }
    }
}

namespace {

/// Parts of one category: steps of its lightness, every second one hatched.
CategoryStyle partStyle(const CategoryStyle& whole, int tone, const ThemeTokens& theme) {
    // Neighbours differ by at least a fifth of the whole scale of lightness.
    static constexpr double kLight[] = {0.62, 0.27, 0.80, 0.50};
    static constexpr double kDark[] = {0.78, 0.40, 0.88, 0.52};
    static constexpr Hatch kHatches[] = {Hatch::BackDiagonal, Hatch::None, Hatch::Dots, Hatch::ForwardDiagonal};
    const int step = (tone - 1) % 4;
    CategoryStyle style = whole;
    const auto hsl = whole.fill.toHsl();
    style.fill =
        QColor::fromHslF(hsl.hslHueF(), hsl.hslSaturationF(), static_cast<float>((theme.dark ? kDark : kLight)[step]))
            .toRgb();
    style.hatch = kHatches[step];
    style.tile = style.hatch == Hatch::Dots ? 4 : 6;
    const QColor dark(0x10, 0x12, 0x15), white(Qt::white);
    style.ink = contrastRatio(style.fill, dark) > contrastRatio(style.fill, white) ? dark : white;
    return style;
}

/// The light step of a category's colour.
CategoryStyle secondRoleStyle(const CategoryStyle& whole, const ThemeTokens& theme) {
    constexpr float kDarkLightness = 0.79F, kLightLightness = 0.68F;
    CategoryStyle style = whole;
    const auto hsl = whole.fill.toHsl();
    style.fill =
        QColor::fromHslF(hsl.hslHueF(), hsl.hslSaturationF(), theme.dark ? kDarkLightness : kLightLightness).toRgb();
    style.hatch = Hatch::ForwardDiagonal;
    style.tile = 6;
    style.ink = QColor(0x10, 0x12, 0x15);
    return style;
}

} // namespace

CategoryStyle layerStyle(const StackLayer& layer, const ThemeTokens& theme) {
    if (layer.idle) {
        constexpr int kIdleTile = 10;
        return {theme.canvas, theme.text1, Hatch::BackDiagonal, kIdleTile};
    }
    if (layer.category >= 0 && layer.category < base::kCategoryCount) {
        const CategoryStyle& whole = theme.categories[static_cast<std::size_t>(layer.category)];
        return layer.tone == kSecondRole ? secondRoleStyle(whole, theme)
               : layer.tone > 0          ? partStyle(whole, layer.tone, theme)
                                         : whole;
    }
    // Fills that differ most from their neighbours in this order.
    using C = base::MemoryCategory;
    static constexpr C kOrder[] = {C::Weights,   C::Activations, C::Optimizer, C::KvCache,
                                   C::Gradients, C::Comm,        C::BlockMask, C::Logits};
    constexpr int kCount = static_cast<int>(std::size(kOrder));
    CategoryStyle style = theme.category(kOrder[layer.tone % kCount]);
    style.hatch = layer.tone < kCount ? Hatch::None : Hatch::BackDiagonal;
    style.tile = 6;
    return style;
}

bool LabelPlaces::take(const QRectF& rect) {
    for (const QRectF& other : taken_) {
        if (other.intersects(rect)) {
            return false;
        }
    }
    taken_.push_back(rect);
    return true;
}

} // namespace vitrine::ui
