// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/heat_map.h"

#include <QMouseEvent>
#include <QPainter>
#include <QResizeEvent>
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

constexpr double kMapLeft = 59, kMapTop = 6, kMapAxis = 18, kMapRight = 96;
constexpr int kNarrowCellsFrom = 65; ///< columns
constexpr double kUsualCell = 18, kWidestCell = 36;
constexpr int kMostRoles = 12;      ///< rows that are all in view
constexpr int kMapRows = 8;         ///< in view of more than those
constexpr double kMapLabelGap = 64; ///< between the numbers of columns

/// OKLab to sRGB (B. Ottosson, "A perceptual color space for image processing", 2020).
QColor colorOfOkLab(double lightness, double a, double b) {
    const auto cube = [](double v) { return v * v * v; };
    const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
    const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
    const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
    const auto channel = [](double linear) {
        const double v = std::clamp(linear, 0.0, 1.0);
        const double shown = v <= 0.0031308 ? 12.92 * v : 1.055 * std::pow(v, 1 / 2.4) - 0.055;
        return static_cast<int>(std::lround(shown * 255));
    };
    return {channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
            channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
            channel(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

constexpr double kRampFrom = 0.29, kRampTo = 0.89; ///< lightness

} // namespace

QColor heatColor(int step) {
    static const std::array<QColor, ErrorScale::kSteps> kRamp = [] {
        std::array<QColor, ErrorScale::kSteps> ramp;
        for (int i = 0; i < ErrorScale::kSteps; ++i) {
            const double part = static_cast<double>(i) / (ErrorScale::kSteps - 1);
            ramp[static_cast<std::size_t>(i)] =
                colorOfOkLab(kRampFrom + (kRampTo - kRampFrom) * part, -0.018 + 0.022 * part, -0.085 + 0.215 * part);
        }
        return ramp;
    }();
    return kRamp[static_cast<std::size_t>(std::clamp(step, 0, ErrorScale::kSteps - 1))];
}

QColor heatInk(int step) {
    static const QColor kDark(0x10, 0x12, 0x15);
    const QColor ground = heatColor(step);
    return contrastRatio(Qt::white, ground) > contrastRatio(kDark, ground) ? QColor(Qt::white) : kDark;
}

double drawHeatSwatches(QPainter& painter, double right, double middle, const ErrorScale& scale) {
    const QFont font = Theme::instance().font(TypeRole::Axis);
    double wide = 29;
    for (int i = 0; i < ErrorScale::kSteps; ++i) {
        wide = std::max(wide, std::ceil(textWidth(scale.stepText(i), font)) + 6);
    }
    double x = right;
    for (int i = 0; i < ErrorScale::kSteps; ++i) {
        x -= wide + 1;
        const QRectF swatch(x, middle - 7.5, wide, 15);
        painter.fillRect(swatch, heatColor(i));
        drawText(painter, swatch, Qt::AlignCenter, scale.stepText(i), heatInk(i), font);
    }
    return x;
}

HeatMap::HeatMap(const QString& title, QWidget* parent) : ScrollPlot(title, parent) {
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void HeatMap::setContent(HeatMapContent content) {
    content_ = std::move(content);
    means_.clear();
    worsts_.clear();
    const auto columns = static_cast<std::size_t>(content_.columns);
    for (std::size_t row = 0; row < content_.rows.size(); ++row) {
        const auto values = std::span(content_.values).subspan(row * columns, columns);
        means_.push_back(content_.scale.valueText(meanError(content_.scale.measure, values)));
        worsts_.push_back(content_.scale.valueText(worstError(content_.scale.measure, values)));
    }
    if (selected_ && !content_.has(selected_->first, selected_->second)) {
        selected_.reset();
    }
    hovered_.reset();
    updateGeometry();
    contentChanged();
}

void HeatMap::setSelected(std::optional<Cell> cell) {
    selected_ = cell && content_.has(cell->first, cell->second) ? cell : std::nullopt;
    if (selected_) {
        const Pitch step = pitch(size());
        reveal({selected_->second * step.across, selected_->first * step.down, step.across, step.down});
    }
    update();
}

HeatMap::Pitch HeatMap::pitch(const QSizeF& size) const {
    if (content_.columns >= kNarrowCellsFrom) {
        return {13, 17};
    }
    const double room = size.width() - kMapLeft - kMapRight;
    if (content_.columns * kUsualCell > room) {
        return {16, 16};
    }
    const double wide = std::floor(room / std::max(1, content_.columns)); // few layers share the room
    return {std::clamp(wide, kUsualCell, kWidestCell), 17};
}

QRectF HeatMap::movingArea(const QSizeF& size) const {
    const double room = size.width() - kMapLeft - kMapRight;
    const double wide = std::min(room, content_.columns * pitch(size).across);
    const double bar = content_.columns * pitch(size).across > room ? kBarRoom : 0;
    return {kMapLeft, kMapTop, std::max(1.0, wide), std::max(1.0, size.height() - kMapTop - kMapAxis - bar)};
}

QSizeF HeatMap::contentSize(const QSizeF& size) const {
    const Pitch step = pitch(size);
    return {content_.columns * step.across, static_cast<double>(content_.rows.size()) * step.down};
}

QSize HeatMap::sizeHint() const {
    const int all = static_cast<int>(content_.rows.size());
    const int rows = all > kMostRoles ? kMapRows : std::max(1, all);
    const bool scrolls = contentSize(size()).width() > width() - kMapLeft - kMapRight;
    return {700, static_cast<int>(kMapTop + kMapAxis + rows * pitch(size()).down + (scrolls ? kBarRoom : 0))};
}

QSize HeatMap::minimumSizeHint() const {
    return {320, sizeHint().height()};
}

HeatMap::Shown HeatMap::shown(const QSizeF& size) const {
    const Pitch step = pitch(size);
    const QSizeF area = movingArea(size).size();
    const QPointF from = offset();
    const auto first = [](double at, double pitch) { return static_cast<int>(at / pitch); };
    return {first(from.y(), step.down),
            std::min(static_cast<int>(content_.rows.size()), first(from.y() + area.height() - 1, step.down) + 1),
            first(from.x(), step.across),
            std::min(content_.columns, first(from.x() + area.width() - 1, step.across) + 1)};
}

QRectF HeatMap::placeOf(Cell cell, const QSizeF& size) const {
    const Pitch step = pitch(size);
    const QPointF corner = movingArea(size).topLeft() - offset();
    return {corner.x() + cell.second * step.across, corner.y() + cell.first * step.down, step.across - 1,
            step.down - 1};
}

QRectF HeatMap::cellRect(Cell cell) const {
    return placeOf(cell, size());
}

std::optional<HeatMap::Cell> HeatMap::cellAt(QPointF position) const {
    if (!movingArea(size()).contains(position)) {
        return std::nullopt;
    }
    const QPointF at = toContent(position);
    const Pitch step = pitch(size());
    const Cell cell{static_cast<int>(at.y() / step.down), static_cast<int>(at.x() / step.across)};
    return content_.has(cell.first, cell.second) ? std::optional(cell) : std::nullopt;
}

void HeatMap::paintCells(QPainter& painter, const QSizeF& size) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis, true);
    const QBrush hatch = hatchBrush(Hatch::BackDiagonal, 4, QColor(0x10, 0x12, 0x15, 140), deviceRatio(painter));
    const Shown view = shown(size);
    for (int row = view.firstRow; row < view.lastRow; ++row) {
        for (int column = view.firstColumn; column < view.lastColumn; ++column) {
            const QRectF place = placeOf({row, column}, size);
            const float value = content_.values[content_.at(row, column)];
            const int step = content_.scale.stepOf(value);
            if (step < 0) {
                painter.setPen(QPen(t.line1, 1));
                painter.setBrush(Qt::NoBrush);
                painter.drawRect(place.adjusted(0.5, 0.5, -0.5, -0.5));
                continue;
            }
            painter.fillRect(place, heatColor(step));
            if (!content_.kept.empty() && content_.kept[content_.at(row, column)] != 0) {
                painter.fillRect(place, hatch);
            } else if (content_.numbersFrom && content_.scale.worse(value, *content_.numbersFrom)) {
                const QString number = QString::number(value, 'f', 0);
                if (textWidth(number, font) <= place.width()) {
                    drawText(painter, place, Qt::AlignCenter, number, heatInk(step), font);
                }
            }
        }
    }
}

void HeatMap::paintRowWords(QPainter& painter, const QSizeF& size) const {
    const ThemeTokens& t = themeTokens();
    const QFont plain = Theme::instance().font(TypeRole::Table), strong = Theme::instance().font(TypeRole::Table, true);
    const QRectF area = movingArea(size);
    const Shown view = shown(size);
    painter.save();
    painter.setClipRect(QRectF(0, area.top() - 1, size.width(), area.height() + 2));
    for (int row = view.firstRow; row < view.lastRow; ++row) {
        const QRectF place = placeOf({row, 0}, size);
        const bool chosen = selected_ && selected_->first == row;
        const auto at = static_cast<std::size_t>(row);
        drawText(painter, QRectF(2, place.top(), kMapLeft - 12, place.height()), Qt::AlignRight | Qt::AlignVCenter,
                 content_.rows[at], chosen ? t.text1 : t.text2, chosen ? strong : plain);
        drawText(painter, QRectF(area.right(), place.top(), 46, place.height()), Qt::AlignRight | Qt::AlignVCenter,
                 means_[at], t.text1, plain);
        drawText(painter, QRectF(area.right() + 48, place.top(), 46, place.height()), Qt::AlignRight | Qt::AlignVCenter,
                 worsts_[at], t.text2, plain);
    }
    painter.restore();
}

void HeatMap::paintAxis(QPainter& painter, const QSizeF& size) const {
    const ThemeTokens& t = themeTokens();
    const QFont font = Theme::instance().font(TypeRole::Axis);
    const QRectF area = movingArea(size);
    const double top = std::min(area.top() + contentSize(size).height(), area.bottom());
    const auto words = [&](double left, double wide, int alignment, const QString& text) {
        drawText(painter, QRectF(left, top, wide, kMapAxis), alignment | Qt::AlignVCenter, text, t.text3, font);
    };
    words(2, kMapLeft - 12, Qt::AlignRight, tr("layer"));
    words(area.right(), 46, Qt::AlignRight, tr("mean"));
    const bool less = content_.scale.measure != ErrorMeasure::Mse;
    words(area.right() + 48, 46, Qt::AlignRight, less ? tr("least") : tr("most"));
    const Pitch step = pitch(size);
    int each = 1;
    while (each * step.across < kMapLabelGap) {
        each *= 2;
    }
    const Shown view = shown(size);
    for (int column = (view.firstColumn + each - 1) / each * each; column < view.lastColumn; column += each) {
        words(placeOf({0, column}, size).center().x() - 20, 40, Qt::AlignHCenter, QString::number(column));
    }
    if (selected_ && selected_->second >= view.firstColumn && selected_->second < view.lastColumn) {
        const QFont strong = Theme::instance().font(TypeRole::Axis, true);
        const QString number = QString::number(selected_->second);
        const QRectF place = placeOf({0, selected_->second}, size);
        const double wide = std::max(place.width() + 2, textWidth(number, strong) + 4);
        const QRectF tag(place.center().x() - wide / 2, top + 1, wide, 15);
        painter.fillRect(tag, t.text1);
        drawText(painter, tag, Qt::AlignCenter, number, t.canvas, strong);
    }
}

void HeatMap::paintFrame(QPainter& painter, const QSizeF& size, Cell cell, const QColor& color, double wide) const {
    const QRectF place = placeOf(cell, size);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(themeTokens().canvas, wide + 2));
    painter.drawRect(place.adjusted(-1, -1, 1, 1));
    painter.setPen(QPen(color, wide));
    painter.drawRect(place.adjusted(-1, -1, 1, 1));
}

void HeatMap::paintPlot(QPainter& painter, const QSizeF& size) const {
    if (content_.rows.empty() || content_.columns == 0) {
        return;
    }
    const QRectF area = movingArea(size);
    painter.save();
    painter.setClipRect(area.adjusted(-2, -2, 2, 2));
    paintCells(painter, size);
    if (hovered_ && hovered_ != selected_) {
        paintFrame(painter, size, *hovered_, themeTokens().text2, 1);
    }
    if (selected_) {
        paintFrame(painter, size, *selected_, themeTokens().text1, 2);
    }
    painter.restore();
    paintRowWords(painter, size);
    paintAxis(painter, size);
}

QString HeatMap::spoken() const {
    const std::optional<Cell> cell = hovered_ ? hovered_ : selected_;
    return cell && content_.words ? content_.words(cell->first, cell->second) : QString();
}

void HeatMap::resizeEvent(QResizeEvent* event) {
    ScrollPlot::resizeEvent(event);
    if (event->size().width() != event->oldSize().width()) {
        updateGeometry(); // other cells may have other heights
    }
}

void HeatMap::mouseMoveEvent(QMouseEvent* event) {
    if (const std::optional<Cell> cell = cellAt(event->position()); cell != hovered_) {
        hovered_ = cell;
        update();
        announce();
    }
}

void HeatMap::leaveEvent(QEvent* event) {
    ScrollPlot::leaveEvent(event);
    hovered_.reset();
    update();
    emit readoutChanged({});
}

void HeatMap::mousePressEvent(QMouseEvent* event) {
    ScrollPlot::mousePressEvent(event);
    const QRectF area = movingArea(size());
    const QPointF at = event->position(), inside = toContent(at);
    const Pitch step = pitch(size());
    const int row = static_cast<int>(std::floor(inside.y() / step.down));
    const int column = static_cast<int>(std::floor(inside.x() / step.across));
    if (const std::optional<Cell> cell = cellAt(at)) {
        emit cellChosen(cell->first, cell->second);
    } else if (at.x() < area.left() && at.y() >= area.top() && at.y() < area.bottom() && content_.has(row, 0)) {
        emit rowChosen(row);
    } else if (at.x() >= area.left() && at.x() < area.right() && at.y() > area.top() && content_.has(0, column)) {
        emit columnChosen(column);
    }
}

void HeatMap::keyPressEvent(QKeyEvent* event) {
    const int key = event->key();
    const bool arrow = key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Up || key == Qt::Key_Down;
    if (!arrow || content_.rows.empty() || content_.columns == 0 || event->modifiers() != Qt::NoModifier) {
        ScrollPlot::keyPressEvent(event);
        return;
    }
    Cell cell = selected_.value_or(Cell{0, 0});
    if (selected_) {
        cell.first += key == Qt::Key_Down ? 1 : key == Qt::Key_Up ? -1 : 0;
        cell.second += key == Qt::Key_Right ? 1 : key == Qt::Key_Left ? -1 : 0;
    }
    cell.first = std::clamp(cell.first, 0, static_cast<int>(content_.rows.size()) - 1);
    cell.second = std::clamp(cell.second, 0, content_.columns - 1);
    hovered_.reset();
    if (selected_ != cell) {
        setSelected(cell);
        announce();
        emit cellChosen(cell.first, cell.second);
    }
}

} // namespace vitrine::ui
