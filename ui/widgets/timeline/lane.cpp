// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/lane.h"

#include <QElapsedTimer>
#include <QEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPushButton>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

/// A gap is seen however short it was, px.
constexpr double kLeastGapWidth = 3;
/// How far marks reach to the left of their place, px: rings and the means of the columns that they stand for.
constexpr double kMarkReach = 12;

/// The header: a chevron, the title, controls, facts and a pin.
class Lane::Header final : public QWidget {
public:
    explicit Header(Lane* lane) : QWidget(lane), lane_(lane) {
        row_ = new QHBoxLayout(this);
        row_->setContentsMargins(24, 1, 8, 0);
        row_->setSpacing(8);
        title_ = new TextLabel(lane->title(), TypeRole::Table, TextColor::Text1, false, this);
        facts_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
        facts_->setElide(true);
        facts_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        facts_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
        pin_ = iconButton(QStringLiteral("pin"), tr("Pin lane to the top"), this);
        pin_->setCheckable(true);
        pin_->setFixedSize(20, 20);
        pin_->setFocusPolicy(Qt::NoFocus);
        row_->addWidget(title_);
        row_->addWidget(facts_, 1);
        row_->addWidget(pin_);
        connect(pin_, &QPushButton::toggled, lane, &Lane::setPinned);
        setToolTip(tr("Click to collapse or expand"));
    }

    void addControl(QWidget* control) { row_->insertWidget(row_->indexOf(facts_), control); }
    void addEnd(QWidget* control) { row_->insertWidget(row_->indexOf(pin_), control); }
    TextLabel* facts() const { return facts_; }
    TextLabel* title() const { return title_; }
    QPushButton* pin() const { return pin_; }

    void setBadge(QChar letter) {
        badge_ = letter;
        row_->setContentsMargins(letter.isNull() ? 24 : 48, 1, 8, 0);
        title_->setStrong(!letter.isNull());
        update();
    }

protected:
    void paintEvent(QPaintEvent*) override {
        const ThemeTokens& t = themeTokens();
        QPainter painter(this);
        painter.fillRect(rect(), underMouse() ? t.hover : t.panel);
        hairline(painter, 0, width(), 0, t.line1);
        painter.drawPixmap(QPointF(8, 7), iconPixmap(lane_->collapsed() ? QStringLiteral("chevron-right")
                                                                        : QStringLiteral("chevron-down"),
                                                     10, t.text3, deviceRatio(painter)));
        if (!badge_.isNull()) {
            drawRunBadge(painter, QRectF(24, 4, 16, 16), badge_, true);
        }
    }

    void mouseReleaseEvent(QMouseEvent* event) override {
        if (event->button() == Qt::LeftButton && rect().contains(event->pos())) {
            lane_->setCollapsed(!lane_->collapsed());
        }
    }

    void enterEvent(QEnterEvent*) override { update(); }
    void leaveEvent(QEvent*) override { update(); }

private:
    Lane* lane_;
    QHBoxLayout* row_;
    TextLabel *title_, *facts_;
    QPushButton* pin_;
    QChar badge_;
};

Lane::Lane(const QString& title, TimeCursor* time, QWidget* parent) : TimeStrip(title, time, parent) {
    header_ = new Header(this);
    connect(&Theme::instance(), &Theme::changed, this, &Lane::invalidate);
    updateHeights();
}

void Lane::setHeader(bool visible) {
    headerHidden_ = !visible;
    header_->setVisible(visible);
    updateHeights();
}

void Lane::setFacts(const QString& facts, TextColor color) {
    header_->facts()->setText(facts);
    header_->facts()->setColor(color);
    header_->facts()->setToolTip(facts);
}

QString Lane::facts() const {
    return header_->facts()->text();
}

void Lane::addHeaderControl(QWidget* control) {
    header_->addControl(control);
}

void Lane::addHeaderEnd(QWidget* control) {
    header_->addEnd(control);
}

void Lane::setBadge(QChar letter) {
    header_->setBadge(letter);
}

void Lane::foldWhileEmpty(bool empty) {
    if (empty != empty_) {
        empty_ = empty;
        setCollapsed(empty);
    }
}

void Lane::setCollapsed(bool collapsed) {
    if (collapsed_ != collapsed && hasHeader()) {
        collapsed_ = collapsed;
        updateHeights();
        emit collapsedChanged();
    }
}

void Lane::setPinned(bool pinned) {
    if (pinned_ != pinned) {
        pinned_ = pinned;
        header_->pin()->setChecked(pinned);
        emit pinnedChanged();
    }
}

void Lane::setPlotHeight(int height, int stretch) {
    plotHeight_ = height;
    stretch_ = stretch;
    updateHeights();
}

void Lane::setMostPlotHeight(int height) {
    if (mostPlotHeight_ != height) {
        mostPlotHeight_ = height;
        updateHeights();
    }
}

void Lane::updateHeights() {
    const int head = headerHeight();
    if (collapsed_) {
        setFixedHeight(head);
    } else if (stretch_ == 0) {
        setFixedHeight(head + plotHeight_);
    } else {
        setMinimumHeight(head + plotHeight_);
        setMaximumHeight(head + std::max(plotHeight_, mostPlotHeight_));
    }
    updateGeometry();
    invalidate();
}

void Lane::setAxis(const AxisMap& axis) {
    TimeStrip::setAxis(axis);
    invalidate();
}

void Lane::setGaps(std::vector<base::GapEvent> gaps) {
    if (!gaps.empty() || !gaps_.empty()) {
        gaps_ = std::move(gaps);
        invalidate();
    }
}

QImage Lane::paintWithGaps(const PlotFrame& frame) {
    QImage image = paint(frame);
    if (gaps_.empty()) {
        return image;
    }
    const ThemeTokens& t = themeTokens();
    const QRectF plot = frame.plot();
    QPainter painter(&image);
    painter.setClipRect(plot);
    for (const base::GapEvent& gap : gaps_) {
        const double left = plot.left() + axis().x(gap.begin);
        const double right = std::max(left + kLeastGapWidth, plot.left() + axis().x(gap.end));
        const QRectF band = QRectF(QPointF(left, plot.top()), QPointF(right, plot.bottom())).intersected(plot);
        if (band.isEmpty()) {
            continue;
        }
        painter.fillRect(band, withAlpha(t.canvas, 0.6));
        painter.fillRect(band, hatchBrush(Hatch::BackDiagonal, 6, withAlpha(t.warn, 0.75), frame.dpr));
        const QFont font = Theme::instance().font(TypeRole::Table);
        const QString text = tr("%1 records lost").arg(countText(static_cast<qint64>(gap.records)));
        const QRectF box(band.left() + 4, band.top() + 2, textWidth(text, font) + 8, 16);
        if (band.contains(box)) {
            painter.fillRect(box, withAlpha(t.canvas, 0.86));
            drawText(painter, box, Qt::AlignCenter, text, t.text1, font);
        }
    }
    return image;
}

void Lane::invalidate() {
    dirty_ = true;
    header_->title()->setText(title());
    update();
}

void Lane::invalidateFrom(base::TimeNs place) {
    dirtyFrom_ = std::min(place, dirtyFrom_.value_or(place));
    update();
}

PlotFrame Lane::frame() const {
    return {QSizeF(width(), std::max(0, height() - headerHeight())), devicePixelRatioF(), gutter()};
}

QImage Lane::picture(double dpr) {
    PlotFrame wanted = frame();
    wanted.dpr = dpr;
    return paintWithGaps(wanted);
}

bool Lane::step(int) {
    return false;
}

bool Lane::paintFrom(QImage&, const PlotFrame&, double) {
    return false;
}

QRectF Lane::plotRect() const {
    const double head = headerHeight();
    return {gutter(), head, std::max(1.0, width() - gutter()), std::max(0.0, height() - head)};
}

void Lane::paintOver(QPainter& painter, const PlotFrame&) {
    paintCursor(painter, plotRect());
}

void Lane::updatePicture(const PlotFrame& frame) {
    QElapsedTimer clock;
    clock.start();
    const bool whole = dirty_ || cache_.isNull() || std::abs(cache_.devicePixelRatio() - frame.dpr) > 1e-6;
    const double x =
        whole || !gaps_.empty() ? 0 : std::max(0.0, std::floor(gutter() + axis().x(*dirtyFrom_) - kMarkReach));
    const double columns = (frame.size.width() - x) * frame.dpr;
    if (x == 0 || (columns > 0 && !paintFrom(cache_, frame, x))) {
        cache_ = paintWithGaps(frame);
        paintedColumns_ += std::llround(frame.size.width() * frame.dpr);
    } else {
        paintedColumns_ += std::max<std::int64_t>(0, std::llround(columns));
    }
    lastPictureMs_ = static_cast<double>(clock.nsecsElapsed()) / 1e6;
    ++pictures_;
    dirty_ = false;
    dirtyFrom_.reset();
}

void Lane::paintEvent(QPaintEvent*) {
    if (collapsed_ || height() <= headerHeight()) {
        return;
    }
    QPainter painter(this);
    PlotFrame wanted = frame();
    wanted.dpr = deviceRatio(painter);
    if (dirty_ || dirtyFrom_ || cache_.isNull() || std::abs(cache_.devicePixelRatio() - wanted.dpr) > 1e-6) {
        updatePicture(wanted);
    }
    painter.drawImage(QPointF(0, headerHeight()), cache_);
    paintOver(painter, wanted);
    paintFocus(painter, QRectF(0, headerHeight(), width(), height() - headerHeight()));
}

void Lane::resizeEvent(QResizeEvent* event) {
    TimeStrip::resizeEvent(event);
    header_->setGeometry(0, 0, width(), kHeaderHeight);
    invalidate();
}

void Lane::changeEvent(QEvent* event) {
    TimeStrip::changeEvent(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::PaletteChange) {
        invalidate();
    }
}

} // namespace vitrine::ui
