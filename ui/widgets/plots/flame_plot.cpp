// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/flame_plot.h"

#include <QPainter>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

namespace {

constexpr double kLowest = 22, kHighest = 60, kTwoLines = 38, kFlameMargin = 12, kFlameTop = 8, kFlameSmallest = 2,
                 kLabelled = 18, kElided = 56, kHatched = 24;

bool isAbove(const profiler::FlameTree& flame, std::size_t node, std::size_t inner) {
    for (auto at = static_cast<std::int32_t>(inner); at >= 0; at = flame.nodes[static_cast<std::size_t>(at)].parent) {
        if (static_cast<std::size_t>(at) == node) {
            return true;
        }
    }
    return false;
}

/// Place of a node among its siblings, which stand together.
int siblingNumber(const profiler::FlameTree& flame, std::size_t node) {
    int number = 0;
    while (node > 0 && flame.nodes[node - 1].parent == flame.nodes[node].parent) {
        --node;
        ++number;
    }
    return number;
}

/// Height of a level: all of them fill what there is, within reason.
double rowHeight(const profiler::FlameTree& flame, const QSizeF& size) {
    return std::clamp(std::floor((size.height() - 2 * kFlameTop) / std::max(1, flame.depth)), kLowest, kHighest);
}

CategoryStyle styleOf(const profiler::FlameTree& flame, std::size_t node, const ThemeTokens& theme) {
    const profiler::FlameNode& here = flame.nodes[node];
    if (here.category < 0) {
        CategoryStyle style;
        style.fill = here.depth == 0 ? theme.band : here.depth == 1 ? theme.pressed : theme.hover;
        style.ink = theme.text1;
        return style;
    }
    const bool kernel = here.parent >= 0 && flame.nodes[static_cast<std::size_t>(here.parent)].category >= 0;
    return layerStyle({{}, here.category, kernel ? 1 + siblingNumber(flame, node) % 4 : 0}, theme);
}

void drawLabels(QPainter& painter, const QRectF& box, const profiler::FlameNode& node, const CategoryStyle& style,
                bool hatched) {
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const QRectF inner = box.adjusted(5, 0, -4, 0);
    QString name = textOf(node.name);
    if (textWidth(name, font) > inner.width() && inner.width() < kElided) {
        name = name.section(QLatin1Char(' '), -1); // of "layer 12" the number
        if (textWidth(name, font) > inner.width()) {
            return;
        }
    }
    const QString time = durationText(static_cast<base::TimeNs>(node.length));
    const bool two = box.height() >= kTwoLines;
    const double extra = textWidth(time, font), nameWidth = std::min(textWidth(name, font), inner.width());
    const bool timed = two ? extra <= inner.width() : inner.width() >= nameWidth + extra + 12;
    const QRectF first = two ? QRectF(inner.left(), box.center().y() - 16, inner.width(), 16) : inner;
    if (hatched) {
        // Letters stand on the plain colour.
        const double width = two && timed ? std::max(nameWidth, extra) : nameWidth;
        painter.fillRect(QRectF(box.left() + 2, first.top(), width + 7, two ? 32 : first.height()).intersected(box),
                         style.fill);
    }
    drawText(painter, first, Qt::AlignVCenter, name, style.ink, font);
    if (timed && (two || !hatched)) {
        drawText(painter, two ? first.translated(0, 16) : inner,
                 two ? Qt::AlignVCenter : Qt::AlignVCenter | Qt::AlignRight, time, style.ink, font);
    }
}

} // namespace

std::vector<FlameItem> flameItems(const profiler::FlameTree& flame, std::size_t zoomed, const QSizeF& size) {
    std::vector<FlameItem> items;
    if (zoomed >= flame.nodes.size() || flame.nodes[zoomed].length <= 0) {
        return items;
    }
    const profiler::FlameNode& whole = flame.nodes[zoomed];
    const double room = std::max(1.0, size.width() - 2 * kFlameMargin);
    const double row = rowHeight(flame, size);
    for (std::size_t i = 0; i < flame.nodes.size(); ++i) {
        const profiler::FlameNode& node = flame.nodes[i];
        const double top = kFlameTop + node.depth * row;
        if (i != zoomed && isAbove(flame, i, zoomed)) {
            items.push_back({QRectF(kFlameMargin, top, room, row - 1), i, 1});
            continue;
        }
        if (!isAbove(flame, zoomed, i)) {
            continue;
        }
        const double left = kFlameMargin + (node.begin - whole.begin) / whole.length * room;
        const double width = node.length / whole.length * room;
        if (width >= kFlameSmallest || i == zoomed) {
            items.push_back({QRectF(left, top, width, row - 1), i, 1});
            continue;
        }
        FlameItem* before = items.empty() ? nullptr : &items.back();
        if (before != nullptr && before->rect.top() == top && before->rect.width() < 8 * kFlameSmallest &&
            flame.nodes[before->node].length / whole.length * room < kFlameSmallest &&
            left - before->rect.right() < kFlameSmallest) {
            before->rect.setRight(left + width);
            ++before->count;
        } else {
            items.push_back({QRectF(left, top, std::max(1.0, width), row - 1), i, 1});
        }
    }
    return items;
}

FlamePlot::FlamePlot(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    connect(this, &ItemPlot::itemClicked, this, [this](int item) {
        const FlameItem& here = items()[static_cast<std::size_t>(item)];
        const profiler::FlameNode& node = flame_->nodes[here.node];
        emit nodeChosen(textOf(node.name), node.depth);
        zoomTo(here.count > 1 && node.parent >= 0 ? static_cast<std::size_t>(node.parent) : here.node);
    });
}

void FlamePlot::setFlame(profiler::FlameTreePtr flame) {
    const bool same = flame_ && flame && flame_->nodes.size() == flame->nodes.size();
    flame_ = std::move(flame);
    zoomTo(same ? zoomed_ : 0);
}

void FlamePlot::zoomTo(std::size_t node) {
    zoomed_ = node;
    itemsFor_ = {};
    forgetCurrentItem();
    invalidate();
}

const std::vector<FlameItem>& FlamePlot::items() const {
    if (itemsFor_ != size()) {
        items_ = flame_ ? flameItems(*flame_, zoomed_, size()) : std::vector<FlameItem>();
        itemsFor_ = size();
    }
    return items_;
}

QImage FlamePlot::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    if (!flame_) {
        return image;
    }
    QPainter painter(&image);
    for (const FlameItem& item : flameItems(*flame_, zoomed_, size)) {
        const profiler::FlameNode& node = flame_->nodes[item.node];
        const double left = std::round(item.rect.left()), right = std::round(item.rect.right());
        QRectF box(left, item.rect.top(), std::max(1.0, right - left - (right - left > 3 ? 1 : 0)), item.rect.height());
        if (item.count > 1) {
            painter.fillRect(box, freeHatch(t, 4, dpr));
            continue;
        }
        CategoryStyle style = styleOf(*flame_, item.node, t);
        if (box.width() < kHatched) {
            style.hatch = Hatch::None; // many narrow hatches beside each other are noise
        }
        fillCategory(painter, box, style, dpr);
        if (box.width() >= kLabelled) {
            drawLabels(painter, box, node, style, style.hatch != Hatch::None);
        }
    }
    return image;
}

int FlamePlot::itemAt(QPointF position) const {
    const auto& all = items();
    const auto found = std::ranges::find_if(all, [&](const FlameItem& item) { return item.rect.contains(position); });
    return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

int FlamePlot::itemBeside(int item, int key) const {
    const auto& all = items();
    if (item < 0) {
        const auto zoom = std::ranges::find(all, zoomed_, &FlameItem::node);
        return zoom == all.end() ? 0 : static_cast<int>(zoom - all.begin());
    }
    const QRectF here = all[static_cast<std::size_t>(item)].rect;
    int best = item;
    double distance = 1e12;
    const double row = rowHeight(*flame_, size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const QRectF there = all[i].rect;
        const double down = (there.top() - here.top()) / row, across = there.center().x() - here.center().x();
        const bool fits =
            key == Qt::Key_Left    ? std::abs(down) < 0.5 && across < 0
            : key == Qt::Key_Right ? std::abs(down) < 0.5 && across > 0
            : key == Qt::Key_Down
                ? std::abs(down - 1) < 0.5 && there.left() < here.right() && there.right() > here.left()
                : std::abs(down + 1) < 0.5 && there.left() <= here.left() + 0.5 && there.right() >= here.right() - 0.5;
        // Down goes to the largest child, which is the leftmost.
        const double far = key == Qt::Key_Down ? there.left() : std::abs(across);
        if (fits && far < distance) {
            best = static_cast<int>(i);
            distance = far;
        }
    }
    return best;
}

QString FlamePlot::itemText(int item) const {
    const FlameItem& here = items()[static_cast<std::size_t>(item)];
    const profiler::FlameNode& node = flame_->nodes[here.node];
    if (here.count > 1) {
        return tr("%1 entries too narrow to draw, from %2 on").arg(here.count).arg(textOf(node.name));
    }
    QStringList path;
    for (std::int32_t at = node.parent; at > 0; at = flame_->nodes[static_cast<std::size_t>(at)].parent) {
        path.prepend(textOf(flame_->nodes[static_cast<std::size_t>(at)].name));
    }
    const double share = node.length / std::max(1.0, flame_->nodes.front().length);
    const QString calls = countText(static_cast<std::int64_t>(node.calls));
    return tr("%1: %2, %3 of all, %4%5")
        .arg(textOf(node.name), durationText(static_cast<base::TimeNs>(node.length)), shareText(share),
             flame_->ofKernels ? tr("%1 kernels").arg(calls) : tr("%1 ops").arg(calls),
             path.isEmpty() ? QString() : QStringLiteral("; ") + path.join(QStringLiteral(" / ")));
}

QRectF FlamePlot::itemFrame(int item) const {
    return items()[static_cast<std::size_t>(item)].rect.adjusted(-0.5, -0.5, 0.5, 0.5);
}

bool FlamePlot::zoomOut() {
    if (!flame_ || zoomed_ == 0) {
        return false;
    }
    zoomTo(static_cast<std::size_t>(std::max(0, flame_->nodes[zoomed_].parent)));
    return true;
}

void FlamePlot::resizeEvent(QResizeEvent* event) {
    ItemPlot::resizeEvent(event);
    forgetCurrentItem();
}

} // namespace vitrine::ui
