// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/slot_lane.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "ui/models/batching/batch_tables.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr int kCountedSlots = 1000; ///< no window is as high as so many tall rows

} // namespace

void BatchLane::setMap(BatchMapPtr map) {
    map_ = std::move(map);
    if (map_ && map_->side().request(chosen_) == nullptr) {
        chosen_ = -1;
    }
    invalidate();
}

void BatchLane::setChosen(std::int32_t request) {
    chosen_ = request;
    update();
}

void BatchLane::choose(std::int32_t request) {
    setChosen(request);
    emit requestChosen(request);
}

QString BatchLane::spoken() const {
    const BatchRequest* request = map_ ? map_->side().request(chosen_) : nullptr;
    return request != nullptr ? requestText(*request) : facts();
}

void BatchLane::clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) {
    const std::int32_t request = requestAt(position); // rows may follow the cursor
    Lane::clickedAt(position, modifiers);
    choose(request);
}

void BatchLane::hoveredAt(std::optional<QPointF> position) {
    emit pointed(position ? wordsAt(*position) : QString());
}

bool BatchLane::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const QString words = wordsAt(help->pos());
        if (words.isEmpty()) {
            QToolTip::hideText();
        } else {
            QToolTip::showText(help->globalPos(), words, this);
        }
        return true;
    }
    return Lane::event(event);
}

void BatchLane::paintFrame(QPainter& painter, const QRectF& box) const {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(themeTokens().canvas, 4));
    painter.drawRect(box.adjusted(-1, -1, 1, 1));
    painter.setPen(QPen(themeTokens().text1, 2));
    painter.drawRect(box.adjusted(-1, -1, 1, 1));
}

SlotLane::SlotLane(const QString& title, TimeCursor* time, QWidget* parent) : BatchLane(title, time, parent) {
    setPlotHeight(96, 3);
}

void SlotLane::setMap(BatchMapPtr map) {
    span_.reset();
    slot_ = map ? std::clamp(slot_, 0, std::max(0, map->side().slotCount - 1)) : 0;
    BatchLane::setMap(std::move(map));
    fitHeight();
}

void SlotLane::setFills(bool fills) {
    fills_ = fills;
    fitHeight();
}

void SlotLane::fitHeight() {
    const int counted = map() && !fills_ ? std::clamp(map()->side().slotCount, 1, kCountedSlots) : kCountedSlots;
    setMostPlotHeight(static_cast<int>(2 * kSlotsTop + kTallestSlot * counted));
}

void SlotLane::setGain(std::optional<SlotGain> gain) {
    gain_ = std::move(gain);
    invalidate();
}

SlotRows SlotLane::rows() const {
    return slotRows(map() ? map()->side().slotCount : 0, plotRect().height());
}

QImage SlotLane::paint(const PlotFrame& frame) {
    return paintSlots({map(), axis(), gain_}, frame, themeTokens());
}

std::optional<QRectF> SlotLane::spanRect(std::size_t span) const {
    if (!map() || span >= map()->side().spans.size() || collapsed()) {
        return std::nullopt;
    }
    const TimeRange range = map()->spanRange(span);
    if (range.end < axis().range().begin || range.begin > axis().range().end) {
        return std::nullopt;
    }
    const double a = std::max(xOf(range.begin), plotRect().left()), b = std::min(xOf(range.end), plotRect().right());
    return rows().row(map()->side().spans[span].slot, a, std::max(2.0, b - a)).translated(0, plotRect().top());
}

std::vector<QRectF> SlotLane::chosenFrames() const {
    constexpr double kGap = 1.5; // a smaller one cannot be seen between frames
    std::vector<QRectF> frames;
    if (!map() || chosen() < 0 || collapsed()) {
        return frames;
    }
    const double left = plotRect().left();
    for (const auto spans : map()->spansOf(chosen(), axis().range())) {
        for (auto next = spans.begin(); next != spans.end();) {
            QRectF frame = spanRect(*next).value_or(QRectF());
            // What begins near the frame joins it. Of many that do the last one reaches farthest.
            for (auto last = next;; last = next - 1) {
                next = std::partition_point(last + 1, spans.end(), [&](std::size_t span) {
                    return std::max(xOf(map()->spanRange(span).begin), left) - frame.right() < kGap;
                });
                if (next == last + 1) {
                    break;
                }
                frame = frame.united(spanRect(*(next - 1)).value_or(QRectF()));
            }
            if (!frame.isNull()) { // as in a damaged session, where spans of a slot overlap
                frames.push_back(frame);
            }
        }
    }
    return frames;
}

void SlotLane::paintOver(QPainter& painter, const PlotFrame&) {
    painter.save();
    painter.setClipRect(plotRect().adjusted(-2, 0, 0, 0));
    for (const QRectF& frame : chosenFrames()) {
        paintFrame(painter, frame);
    }
    if (hasFocus() && map() && rows().slotCount > 0) {
        const QRectF row = rows().row(slot_, 0, gutter() - 2).translated(0, plotRect().top());
        painter.setClipping(false);
        painter.fillRect(QRectF(gutter() - 5, row.top(), 3, std::max(2.0, row.height())), themeTokens().accent);
    }
    painter.restore();
    paintCursor(painter, plotRect());
}

std::optional<std::size_t> SlotLane::spanAt(QPointF position) const {
    if (!map() || !plotRect().contains(position)) {
        return std::nullopt;
    }
    return map()->spanAt(rows().slotAt(position.y() - plotRect().top()), timeAt(position.x()));
}

std::int32_t SlotLane::requestAt(QPointF position) const {
    const auto span = spanAt(position);
    return span ? map()->side().spans[*span].request : -1;
}

QString SlotLane::spanText(std::size_t index) const {
    const BatchSide& side = map()->side();
    const base::SlotSpanEvent& span = side.spans[index];
    QString words = tr("Slot %1: %2, %3 from %4, steps %5 to %6")
                        .arg(span.slot)
                        .arg(slotStateWord(span.state), durationText(span.end - span.begin), instantText(span.begin),
                             countText(span.firstStep), countText(span.firstStep + span.steps - 1));
    if (span.padding > 0) {
        words += tr(", %1 padding tokens").arg(countText(span.padding));
    }
    if (const BatchRequest* request = side.request(span.request)) {
        words += QStringLiteral(". ") + requestText(*request);
    }
    return words;
}

QString SlotLane::wordsAt(QPointF position) const {
    if (const auto span = spanAt(position)) {
        return spanText(*span);
    }
    const int slot = map() && plotRect().contains(position) ? rows().slotAt(position.y() - plotRect().top()) : -1;
    return slot >= 0 ? tr("Slot %1: idle").arg(slot) : QString();
}

QString SlotLane::spoken() const {
    return span_ && map() && *span_ < map()->side().spans.size() ? spanText(*span_) : BatchLane::spoken();
}

void SlotLane::clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) {
    span_ = spanAt(position);
    const int slot = map() ? rows().slotAt(position.y() - plotRect().top()) : -1;
    slot_ = slot >= 0 ? slot : slot_;
    BatchLane::clickedAt(position, modifiers);
    if (slot >= 0) {
        emit slotChosen(slot_);
    }
}

void SlotLane::doubleClickedAt(QPointF position) {
    if (const auto span = spanAt(position)) {
        const TimeRange range = map()->spanRange(*span);
        const base::TimeNs air = std::max<base::TimeNs>(1, range.length() / 10);
        time()->jumpTo({range.begin - air, range.end + air});
    }
}

void SlotLane::keyPressEvent(QKeyEvent* event) {
    const bool up = event->key() == Qt::Key_Up;
    if (map() && event->modifiers() == Qt::ShiftModifier && (up || event->key() == Qt::Key_Down)) {
        slot_ = std::clamp(slot_ + (up ? -1 : 1), 0, std::max(0, map()->side().slotCount - 1));
        span_ = map()->spanAt(slot_, time()->cursor().value_or(time()->range().begin));
        choose(span_ ? map()->side().spans[*span_].request : -1);
        emit slotChosen(slot_);
        emit pointed(span_ ? spanText(*span_) : tr("Slot %1: idle").arg(slot_));
        return;
    }
    BatchLane::keyPressEvent(event);
}

bool SlotLane::step(int direction) {
    if (!map() || map()->side().slotCount == 0) {
        return false;
    }
    const BatchSide& side = map()->side();
    const auto first = static_cast<std::ptrdiff_t>(side.slotBegins[static_cast<std::size_t>(slot_)]);
    const auto last = static_cast<std::ptrdiff_t>(side.slotBegins[static_cast<std::size_t>(slot_) + 1]);
    std::ptrdiff_t next = first;
    if (span_ && side.spans[*span_].slot == slot_) {
        next = static_cast<std::ptrdiff_t>(*span_) + direction;
    } else if (const auto here = map()->spanAt(slot_, time()->cursor().value_or(time()->range().begin))) {
        next = static_cast<std::ptrdiff_t>(*here);
    }
    if (next < first || next >= last) {
        return false;
    }
    span_ = static_cast<std::size_t>(next);
    time()->goTo(map()->spanRange(*span_).begin);
    choose(side.spans[*span_].request);
    emit slotChosen(slot_);
    emit pointed(spanText(*span_));
    return true;
}

RequestLane::RequestLane(const QString& title, TimeCursor* time, QWidget* parent)
    : BatchLane(title, time, parent), bar_(new QScrollBar(Qt::Vertical, this)) {
    setPlotHeight(96, 3);
    bar_->setFocusPolicy(Qt::NoFocus);
    connect(bar_, &QScrollBar::valueChanged, this, [this](int first) {
        invalidate();
        emit scrolled(first);
    });
}

int RequestLane::first() const {
    return bar_->value();
}

void RequestLane::setFirst(int row) {
    bar_->setValue(row);
}

int RequestLane::rowCount() const {
    return only_ ? static_cast<int>(only_->size()) : map() ? static_cast<int>(map()->side().requests.size()) : 0;
}

double RequestLane::pitch() const {
    return requestPitch(static_cast<std::size_t>(rowCount()), plotRect().height());
}

int RequestLane::visibleRows() const {
    return std::max(1, static_cast<int>((plotRect().height() - 3) / pitch()));
}

std::int32_t RequestLane::requestOf(int row) const {
    return row < 0 || row >= rowCount() ? -1 : only_ ? (*only_)[static_cast<std::size_t>(row)] : row;
}

int RequestLane::rowOf(std::int32_t request) const {
    if (!only_) {
        return request < rowCount() ? request : -1;
    }
    const auto found = std::lower_bound(only_->begin(), only_->end(), request);
    return found != only_->end() && *found == request ? static_cast<int>(found - only_->begin()) : -1;
}

void RequestLane::setOnly(std::optional<std::vector<std::int32_t>> requests, const QString& none) {
    if (only_ == requests && none_ == none) {
        return;
    }
    only_ = std::move(requests);
    none_ = none;
    fitBar();
    invalidate();
}

void RequestLane::reveal(const std::vector<std::int32_t>& requests) {
    if (!only_) {
        setFirst(firstOfMost(requests, visibleRows(), first()));
    }
}

void RequestLane::clickedAt(QPointF position, Qt::KeyboardModifiers modifiers) {
    clicking_ = true;
    BatchLane::clickedAt(position, modifiers);
    clicking_ = false;
}

void RequestLane::fitBar() {
    const int count = rowCount();
    const int rows = visibleRows();
    bar_->setRange(0, std::max(0, count - rows));
    bar_->setPageStep(rows);
    bar_->setVisible(count > rows && !collapsed());
    const QRectF plot = plotRect();
    bar_->setGeometry(width() - 12, static_cast<int>(plot.top()) + 1, 12,
                      std::max(0, static_cast<int>(plot.height()) - 2));
}

void RequestLane::setMap(BatchMapPtr map) {
    BatchLane::setMap(std::move(map));
    fitBar();
}

void RequestLane::setChosen(std::int32_t request) {
    BatchLane::setChosen(request);
    const int row = rowOf(request);
    if (row >= 0 && (row < first() || row >= first() + visibleRows())) {
        setFirst(row - visibleRows() / 2);
    }
}

QImage RequestLane::paint(const PlotFrame& frame) {
    return paintRequests({map(), axis(), first(), only_, none_}, frame, themeTokens());
}

void RequestLane::paintOver(QPainter& painter, const PlotFrame&) {
    const QRectF plot = plotRect();
    const int row = rowOf(chosen());
    if (map() && row >= first()) {
        const double top = plot.top() + 3 + (row - first()) * pitch();
        const auto pieces = map()->pieces(chosen());
        if (top < plot.bottom() && !pieces.empty()) {
            const double a = std::clamp(xOf(pieces.front().begin), plot.left(), plot.right());
            const double b = std::clamp(xOf(pieces.back().end), plot.left(), plot.right());
            painter.save();
            painter.setClipRect(plot);
            paintFrame(painter, QRectF(a, top, std::max(2.0, b - a), pitch() - 1));
            painter.restore();
        }
    }
    paintCursor(painter, plot);
}

void RequestLane::resizeEvent(QResizeEvent* event) {
    BatchLane::resizeEvent(event);
    fitBar();
}

/// Over the numbers, or with Alt, the wheel moves the rows; elsewhere it zooms as in every lane.
void RequestLane::wheelEvent(QWheelEvent* event) {
    const bool alt = event->modifiers() & Qt::AltModifier;
    if (!alt && event->position().x() >= gutter()) {
        BatchLane::wheelEvent(event);
        return;
    }
    const int turned = event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x();
    bar_->setValue(bar_->value() - turned * 3 / 120);
    event->accept();
}

void RequestLane::keyPressEvent(QKeyEvent* event) {
    const bool none = event->modifiers() == Qt::NoModifier;
    const bool shift = event->modifiers() == Qt::ShiftModifier;
    if (none && (event->key() == Qt::Key_PageUp || event->key() == Qt::Key_PageDown)) {
        bar_->setValue(bar_->value() + (event->key() == Qt::Key_PageUp ? -1 : 1) * visibleRows());
    } else if (shift && (event->key() == Qt::Key_Up || event->key() == Qt::Key_Down)) {
        step(event->key() == Qt::Key_Up ? -1 : 1);
    } else {
        BatchLane::keyPressEvent(event);
    }
}

std::int32_t RequestLane::requestAt(QPointF position) const {
    const QRectF plot = plotRect();
    if (!map() || !plot.contains(position)) {
        return -1;
    }
    return requestOf(first() + static_cast<int>(std::floor((position.y() - plot.top() - 3) / pitch())));
}

QString RequestLane::wordsAt(QPointF position) const {
    const std::int32_t request = requestAt(position);
    return request >= 0 ? requestText(map()->side().requests[static_cast<std::size_t>(request)]) : QString();
}

bool RequestLane::step(int direction) {
    const int row = rowOf(chosen());
    const std::int32_t next = requestOf(row < 0 ? first() : row + direction);
    if (next < 0) {
        return false;
    }
    choose(next);
    emit pointed(requestText(map()->side().requests[static_cast<std::size_t>(next)]));
    return true;
}

} // namespace vitrine::ui
