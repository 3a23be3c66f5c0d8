// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/page_map.h"

#include <QHelpEvent>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr double kPageMapMargin = 16, kTitle = 24, kAfterGroup = 14;
constexpr double kPageMapSmallest = 10, kLargest = 30, kNumbered = 24, kOwnNumber = 16;

} // namespace

PageMap::PageMap(const QString& title, QWidget* parent) : ItemPlot(title, parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void PageMap::setPages(std::vector<PageGroup> groups,
                       std::function<std::vector<CategoryStyle>(const ThemeTokens&)> styles, const QString& empty) {
    groups_ = std::move(groups);
    styles_ = std::move(styles);
    empty_ = empty;
    if (currentItem() >= itemCount()) {
        forgetCurrentItem();
    }
    invalidate();
}

std::size_t PageMap::cellsOf(const Layout& layout, std::size_t group) const {
    return (groups_[group].cells.size() + layout.pages - 1) / layout.pages;
}

PageMap::Layout PageMap::layoutFor(const QSizeF& size) const {
    Layout layout;
    const double width = std::max(kLargest, size.width() - 2 * kPageMapMargin);
    const auto place = [&](double side, std::size_t pages) {
        layout.side = side;
        layout.pages = pages;
        layout.columns = static_cast<std::size_t>(std::max(1.0, std::floor(width / side)));
        layout.tops.clear();
        double y = kPageMapMargin;
        for (std::size_t group = 0; group < groups_.size(); ++group) {
            y += kTitle;
            layout.tops.push_back(y);
            const std::size_t rows = (cellsOf(layout, group) + layout.columns - 1) / layout.columns;
            y += static_cast<double>(rows) * side + kAfterGroup;
        }
        return y <= size.height();
    };
    for (double side = kLargest; side >= kPageMapSmallest; side -= 2) {
        if (place(side, 1)) {
            return layout;
        }
    }
    std::size_t most = 1;
    for (const PageGroup& group : groups_) {
        most = std::max(most, group.cells.size());
    }
    for (std::size_t pages = 2; pages < most && !place(kPageMapSmallest, pages); pages *= 2) {
    }
    return layout;
}

QRectF PageMap::cellRect(const Layout& layout, std::size_t group, std::size_t cell) const {
    return {kPageMapMargin + static_cast<double>(cell % layout.columns) * layout.side,
            layout.tops[group] + static_cast<double>(cell / layout.columns) * layout.side, layout.side - 2,
            layout.side - 2};
}

/// All numbers or none: some of them would look as if the others had none.
bool PageMap::numbersFit(const Layout& layout) const {
    std::int32_t largest = -1;
    for (const PageGroup& group : groups_) {
        for (const PageCell& cell : group.cells) {
            largest = std::max(largest, cell.number);
        }
    }
    return layout.pages == 1 && layout.side >= kOwnNumber && largest >= 0 &&
           textWidth(QString::number(largest), Theme::instance().font(TypeRole::Axis)) <= layout.side - 2;
}

QImage PageMap::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    if (groups_.empty() || !styles_) {
        drawText(painter, QRectF(QPointF(), size), Qt::AlignCenter, empty_, t.text3,
                 Theme::instance().font(TypeRole::Body));
        return image;
    }
    const std::vector<CategoryStyle> styles = styles_(t);
    const bool numbered = numbersFit(layoutFor(size));
    const Layout layout = layoutFor(size);
    const QFont font = Theme::instance().font(TypeRole::Axis);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        const PageGroup& group = groups_[g];
        const QString title = layout.pages > 1
                                  ? tr("%1, %2 a cell").arg(group.title, countText(static_cast<qint64>(layout.pages)))
                                  : group.title;
        drawText(painter, QRectF(kPageMapMargin, layout.tops[g] - kTitle, size.width() - 2 * kPageMapMargin, 18),
                 Qt::AlignVCenter, title, t.text2, Theme::instance().font(TypeRole::Table));
        for (std::size_t cell = 0; cell < cellsOf(layout, g); ++cell) {
            const std::size_t first = cell * layout.pages;
            const std::size_t last = std::min(first + layout.pages, group.cells.size());
            double used = 0;
            bool marked = false;
            const PageCell* shown = &group.cells[first]; // of several the first that is used
            for (std::size_t page = first; page < last; ++page) {
                used += group.cells[page].used.value_or(1);
                marked = marked || group.cells[page].marked;
                shown = shown->used.value_or(1) <= 0 ? &group.cells[page] : shown;
            }
            const CategoryStyle& style =
                styles[static_cast<std::size_t>(shown->style >= 0 ? shown->style : group.style)];
            used /= static_cast<double>(last - first);
            const QRectF box = cellRect(layout, g, cell);
            painter.fillRect(box, t.line0);
            const double height = used > 0 ? std::max(1.0, std::round(box.height() * used)) : 0;
            fillCategory(painter, QRectF(box.left(), box.bottom() - height, box.width(), height), style, dpr);
            if (layout.pages == 1 && shown->shared) {
                painter.setBrush(Qt::NoBrush);
                painter.setPen(t.text1);
                painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
                painter.setPen(t.canvas);
                painter.drawRect(box.adjusted(1.5, 1.5, -1.5, -1.5));
                painter.setPen(t.text1);
                painter.drawRect(box.adjusted(2.5, 2.5, -2.5, -2.5));
            }
            if (marked) {
                // Over the gap, so that the colour of the cell stays: light around dark on any of them.
                painter.setBrush(Qt::NoBrush);
                painter.setPen(QPen(t.canvas, 1));
                painter.drawRect(box.adjusted(1.5, 1.5, -1.5, -1.5));
                painter.setPen(QPen(t.text1, 2));
                painter.drawRect(box);
            }
            if (shown->number >= 0) {
                if (numbered) {
                    drawText(painter, box, Qt::AlignCenter, QString::number(shown->number), style.ink, font);
                }
            } else if (layout.pages == 1 && shown->style < 0 && layout.side >= kNumbered && used > 0.7) {
                drawText(painter, box, Qt::AlignCenter, QString::number(first), style.ink, font);
            }
        }
    }
    return image;
}

std::optional<PageMap::CellPlace> PageMap::placeOf(const Layout& layout, int item) const {
    auto left = static_cast<std::size_t>(std::max(0, item));
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        if (const std::size_t cells = cellsOf(layout, group); left < cells) {
            return CellPlace{group, left};
        } else {
            left -= cells;
        }
    }
    return std::nullopt;
}

int PageMap::itemOf(const Layout& layout, CellPlace place) const {
    std::size_t item = place.cell;
    for (std::size_t group = 0; group < place.group; ++group) {
        item += cellsOf(layout, group);
    }
    return static_cast<int>(item);
}

int PageMap::itemCount() const {
    const Layout layout = layoutFor(size());
    return groups_.empty() ? 0 : itemOf(layout, {groups_.size() - 1, cellsOf(layout, groups_.size() - 1)});
}

QString PageMap::itemText(int item) const {
    const Layout layout = layoutFor(size());
    const std::optional<CellPlace> place = placeOf(layout, item);
    if (!place) {
        return {};
    }
    const PageGroup& group = groups_[place->group];
    const std::size_t first = std::min(place->cell * layout.pages, group.cells.size() - 1);
    const std::size_t last = std::min(first + layout.pages, group.cells.size()) - 1;
    if (first == last) {
        return group.words ? group.words(first) : QString();
    }
    const auto used = std::count_if(group.cells.begin() + static_cast<std::ptrdiff_t>(first),
                                    group.cells.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                                    [](const PageCell& cell) { return cell.used.value_or(1) > 0; });
    return tr("Pages %1 to %2: %3 in use. %4")
        .arg(countText(static_cast<qint64>(first)), countText(static_cast<qint64>(last)),
             countText(static_cast<qint64>(used)), group.title);
}

bool PageMap::event(QEvent* event) {
    if (event->type() != QEvent::ToolTip) {
        return ItemPlot::event(event);
    }
    const auto* help = static_cast<QHelpEvent*>(event);
    const int item = itemAt(help->pos());
    item >= 0 ? QToolTip::showText(help->globalPos(), itemText(item), this) : QToolTip::hideText();
    return true;
}

std::optional<PageMap::Place> PageMap::pageOf(int item) const {
    const Layout layout = layoutFor(size());
    const std::optional<CellPlace> place = item >= 0 ? placeOf(layout, item) : std::nullopt;
    return place ? std::optional(Place{place->group, place->cell * layout.pages}) : std::nullopt;
}

int PageMap::itemBeside(int item, int key) const {
    const Layout layout = layoutFor(size());
    if (item < 0) {
        return 0;
    }
    const auto columns = static_cast<int>(layout.columns);
    const int step = key == Qt::Key_Right ? 1 : key == Qt::Key_Left ? -1 : key == Qt::Key_Down ? columns : -columns;
    const std::optional<CellPlace> from = placeOf(layout, item);
    if (!from) {
        return 0;
    }
    CellPlace place = *from;
    const auto next = static_cast<std::int64_t>(place.cell) + step;
    if (next < 0) {
        place = place.group > 0 ? CellPlace{place.group - 1, cellsOf(layout, place.group - 1) - 1} : CellPlace{};
    } else if (static_cast<std::size_t>(next) < cellsOf(layout, place.group)) {
        place.cell = static_cast<std::size_t>(next);
    } else if (place.group + 1 < groups_.size()) {
        place = {place.group + 1, 0};
    }
    return itemOf(layout, place);
}

int PageMap::itemAt(QPointF position) const {
    const Layout layout = layoutFor(size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        const double x = (position.x() - kPageMapMargin) / layout.side,
                     y = (position.y() - layout.tops[g]) / layout.side;
        if (x < 0 || y < 0 || x >= static_cast<double>(layout.columns)) {
            continue;
        }
        const std::size_t cell = static_cast<std::size_t>(y) * layout.columns + static_cast<std::size_t>(x);
        if (cell < cellsOf(layout, g)) {
            return itemOf(layout, {g, cell});
        }
    }
    return -1;
}

QRectF PageMap::itemFrame(int item) const {
    const Layout layout = layoutFor(size());
    const std::optional<CellPlace> place = placeOf(layout, item);
    return place ? cellRect(layout, place->group, place->cell).adjusted(-1.5, -1.5, 0.5, 0.5) : QRectF();
}

} // namespace vitrine::ui
