// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/queue/queue_delegate.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

#include "ui/models/queue/queue_model.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"

namespace vitrine::ui {

namespace {

using engine::QueueState;

constexpr int kRunningHeight = 50, kWaitingHeight = 26, kUnfitHeight = 46, kEndedHeight = 24, kFoldHeight = 23;
constexpr double kSecondLine = 17; ///< from the first line of a row to its second one
constexpr double kBarWidth = 64, kBarHeight = 8;
constexpr int kIcon = 14;

QFont tableFont(bool bold = false) {
    return Theme::instance().font(TypeRole::Table, bold);
}

QFont smallFont() {
    return Theme::instance().font(TypeRole::Axis);
}

QColor stateColor(QueueState state, const ThemeTokens& t) {
    switch (state) {
    case QueueState::Running:
        return t.accent;
    case QueueState::DoesNotFit:
    case QueueState::Failed:
        return t.bad;
    case QueueState::Finished:
        return t.good;
    case QueueState::EndedByRule:
    case QueueState::Paused:
        return t.warn;
    default:
        return t.text2;
    }
}

QString stateIcon(QueueState state) {
    switch (state) {
    case QueueState::Running:
        return QStringLiteral("run");
    case QueueState::DoesNotFit:
        return QStringLiteral("close");
    case QueueState::Finished:
        return QStringLiteral("check");
    case QueueState::EndedByRule:
    case QueueState::EndedByUser:
        return QStringLiteral("stop");
    case QueueState::Failed:
        return QStringLiteral("warning");
    default:
        return {};
    }
}

/// The line of a row's texts: in the middle, or the first of two.
QRectF lineOf(const QRectF& rect, bool two, int line) {
    const double middle = rect.center().y() + (two ? (line == 0 ? -8.5 : kSecondLine - 8.5) : 0);
    return {rect.left(), middle - 9, rect.width(), 18};
}

void drawButton(QPainter& painter, const QRectF& rect, const QString& text, const ThemeTokens& t) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(t.line1);
    painter.setBrush(t.raised);
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
    painter.setRenderHint(QPainter::Antialiasing, false);
    drawText(painter, rect.adjusted(8, 0, -8, 0), Qt::AlignCenter, text, t.text1, tableFont());
}

void drawGrip(QPainter& painter, const QRectF& rect, const QColor& color) {
    for (int i = 0; i < 3; ++i) {
        for (int k = 0; k < 2; ++k) {
            painter.fillRect(QRectF(rect.left() + 6 + k * 4, rect.center().y() - 5 + i * 4, 2, 2), color);
        }
    }
}

void drawCourse(QPainter& painter, const QRectF& rect, const std::vector<double>& values, const ThemeTokens& t) {
    hairline(painter, rect.left(), rect.right(), rect.bottom(), withAlpha(t.text1, 0.25));
    if (values.size() < 2) {
        return;
    }
    const auto [low, high] = std::ranges::minmax(values);
    QPolygonF line;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double part = high > low ? (values[i] - low) / (high - low) : 0.5;
        line << QPointF(rect.left() + static_cast<double>(i) / static_cast<double>(values.size() - 1) * rect.width(),
                        rect.bottom() - part * rect.height());
    }
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(t.text2, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawPolyline(line);
    painter.setPen(Qt::NoPen);
    painter.setBrush(t.accent);
    painter.drawEllipse(line.back(), 3, 3);
    painter.setRenderHint(QPainter::Antialiasing, false);
}

bool twoLines(const QueueRow& row) {
    return row.state == QueueState::Running || row.state == QueueState::DoesNotFit;
}

} // namespace

int QueueDelegate::rowHeight(const QueueRow& row) const {
    if (row.kind == QueueRow::Kind::Fold) {
        return kFoldHeight;
    }
    if (row.state == QueueState::DoesNotFit) {
        return kUnfitHeight;
    }
    if (row.state == QueueState::Running) {
        return narrow_ ? kWaitingHeight : kRunningHeight;
    }
    return engine::hasEnded(row.state) ? kEndedHeight : kWaitingHeight;
}

void QueueDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
    const auto& row = static_cast<const QueueModel*>(index.model())->row(index.row());
    const ThemeTokens& t = themeTokens();
    const QRectF rect(option.rect);
    painter->save();
    if (row.kind == QueueRow::Kind::Fold) {
        paintFold(*painter, option, row);
        painter->restore();
        return;
    }
    const bool selected = option.state & QStyle::State_Selected;
    painter->fillRect(rect, selected ? t.selection : index.row() % 2 == 1 ? t.band : t.canvas);
    const bool two = twoLines(row) && !(narrow_ && row.state == QueueState::Running);
    const bool running = row.state == QueueState::Running;
    switch (index.column()) {
    case QueueModel::Run:
        if (row.state == QueueState::DoesNotFit) {
            hairline(*painter, rect.left(), rect.right(), rect.top(), t.line0);
            painter->fillRect(QRectF(rect.left(), rect.top(), 3, rect.height()), t.bad);
        }
        if (!engine::hasEnded(row.state) && !running) {
            drawGrip(*painter, rect, t.text3);
        }
        drawText(*painter, lineOf(rect, two, 0), Qt::AlignRight | Qt::AlignVCenter, row.run, t.text1, tableFont());
        break;
    case QueueModel::Name:
        drawText(*painter, lineOf(rect, two, 0).adjusted(8, 0, -8, 0), Qt::AlignLeft | Qt::AlignVCenter, row.name,
                 t.text1, tableFont(running));
        if (two) {
            drawText(*painter, lineOf(rect, two, 1).adjusted(8, 0, -8, 0), Qt::AlignLeft | Qt::AlignVCenter, row.sub,
                     t.text2, smallFont());
        }
        break;
    case QueueModel::State:
        paintState(*painter, rect, row);
        break;
    case QueueModel::Progress:
        paintProgress(*painter, rect, row);
        break;
    case QueueModel::Peak:
        paintPeak(*painter, rect, row);
        break;
    case QueueModel::Left:
        drawText(*painter, rect.adjusted(4, 0, -4, 0), Qt::AlignRight | Qt::AlignVCenter, row.left,
                 running || row.state == QueueState::Waiting ? t.text1 : t.text2, tableFont(running));
        break;
    default:
        drawText(*painter, rect.adjusted(4, 0, -12, 0), Qt::AlignRight | Qt::AlignVCenter, row.clock, t.text2,
                 tableFont());
    }
    painter->restore();
}

void QueueDelegate::paintFold(QPainter& painter, const QStyleOptionViewItem& option, const QueueRow& row) const {
    const ThemeTokens& t = themeTokens();
    const QRectF rect(option.rect);
    painter.fillRect(rect, t.panel);
    hairline(painter, rect.left(), rect.right(), rect.top(), t.line1);
    painter.drawPixmap(QPointF(rect.left() + 7, rect.top() + 5),
                       iconPixmap(row.unfolded ? QStringLiteral("chevron-down") : QStringLiteral("chevron-right"),
                                  kIcon, t.text3, deviceRatio(painter)));
    const QRectF line = rect.adjusted(26, 1, -12, 0);
    const double name = drawText(painter, line, Qt::AlignLeft | Qt::AlignVCenter, row.name, t.text1, tableFont(true));
    drawText(painter, line.adjusted(name + 8, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, row.progress, t.text3,
             tableFont());
}

void QueueDelegate::paintState(QPainter& painter, const QRectF& rect, const QueueRow& row) const {
    const ThemeTokens& t = themeTokens();
    const bool two = row.state == QueueState::Running && !narrow_;
    const QRectF line = lineOf(rect, two || row.state == QueueState::DoesNotFit, 0);
    const QColor color = stateColor(row.state, t);
    if (const QString name = stateIcon(row.state); !name.isEmpty()) {
        painter.drawPixmap(QPointF(rect.left(), line.center().y() - kIcon / 2.0),
                           iconPixmap(name, kIcon, color, deviceRatio(painter)));
    } else {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(QPen(row.state == QueueState::Paused ? t.warn : t.line2, 1.5));
        painter.setBrush(Qt::NoBrush);
        painter.drawEllipse(QPointF(rect.left() + 7, line.center().y()), 4, 4);
        painter.setRenderHint(QPainter::Antialiasing, false);
    }
    drawText(painter, line.adjusted(20, 0, -4, 0), Qt::AlignLeft | Qt::AlignVCenter, row.stateText,
             row.state == QueueState::Running ? t.text1 : color, tableFont());
    if (two) {
        drawText(painter, lineOf(rect, true, 1).adjusted(20, 0, -4, 0), Qt::AlignLeft | Qt::AlignVCenter, row.stateSub,
                 t.text2, smallFont());
    }
}

void QueueDelegate::paintProgress(QPainter& painter, const QRectF& rect, const QueueRow& row) const {
    const ThemeTokens& t = themeTokens();
    const QRectF area = rect.adjusted(0, 0, -8, 0);
    if (row.state != QueueState::Running || row.done < 0) {
        const bool two = row.state == QueueState::DoesNotFit;
        drawText(painter, lineOf(area, two, 0), Qt::AlignLeft | Qt::AlignVCenter, row.progress, two ? t.text1 : t.text2,
                 tableFont());
        if (two) {
            drawText(painter, lineOf(area, two, 1), Qt::AlignLeft | Qt::AlignVCenter, row.progressSub, t.text1,
                     smallFont());
        }
        return;
    }
    constexpr double kProgressWidth = 110, kCourseWidth = 96, kCourseAt = 122;
    const double middle = area.center().y();
    const double top = narrow_ ? middle - 3 : middle - 11;
    painter.fillRect(QRectF(area.left(), top, kProgressWidth, 6), t.line1);
    painter.fillRect(QRectF(area.left(), top, kProgressWidth * std::clamp(row.done, 0.0, 1.0), 6), t.accent);
    if (narrow_) {
        return;
    }
    drawText(painter, lineOf(area, true, 1), Qt::AlignLeft | Qt::AlignVCenter, row.progressSub, t.text2, smallFont());
    const QRectF course(area.left() + kCourseAt, middle - 18, std::min(kCourseWidth, area.width() - kCourseAt), 36);
    if (course.width() > 30) {
        drawCourse(painter, course, row.course, t);
        drawText(painter, QRectF(course.left(), middle - 20, course.width(), 14), Qt::AlignRight | Qt::AlignVCenter,
                 row.valueText, t.text1, smallFont());
    }
}

void QueueDelegate::paintPeak(QPainter& painter, const QRectF& rect, const QueueRow& row) const {
    const ThemeTokens& t = themeTokens();
    if (row.state == QueueState::DoesNotFit) {
        if (!row.button.isEmpty()) {
            drawButton(painter, nearestButton(rect, row), row.button, t);
        }
        return;
    }
    const bool two = row.state == QueueState::Running && row.peak > 0 && !narrow_;
    constexpr double kNumbers = 34;
    const auto line = [&](const QString& number, const QString& word, int which, const QFont& font) {
        const QRectF at = lineOf(rect, two, which);
        drawText(painter, QRectF(at.left(), at.top(), kNumbers + 6, at.height()), Qt::AlignRight | Qt::AlignVCenter,
                 number, which == 0 ? t.text1 : t.text2, font);
        drawText(painter, QRectF(at.left() + kNumbers + 12, at.top(), 56, at.height()),
                 Qt::AlignLeft | Qt::AlignVCenter, word, which == 0 ? t.text3 : t.text2, smallFont());
    };
    line(row.peakText, row.peakWord, 0, tableFont(two));
    const double left = rect.left() + 104, middle = rect.center().y();
    if (row.budget <= 0 || rect.right() - left < kBarWidth) {
        return;
    }
    const double shown = row.peak > 0 ? row.peak : row.planned;
    painter.fillRect(QRectF(left, middle - kBarHeight / 2, kBarWidth, kBarHeight), t.line0);
    painter.fillRect(QRectF(left, middle - kBarHeight / 2, kBarWidth * std::min(shown / row.budget, 1.0), kBarHeight),
                     t.line2);
    if (row.over) {
        const QRectF box(left + kBarWidth, middle - 6, 9, 12);
        painter.fillRect(box, hatchBrush(Hatch::ForwardDiagonal, 4, withAlpha(t.bad, 0.55), deviceRatio(painter)));
        painter.setPen(t.bad);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5));
        drawText(painter, whyButton(rect, row), Qt::AlignLeft | Qt::AlignVCenter, row.why ? tr("Why") : QString(),
                 t.accent, tableFont());
    } else if (row.planned > 0 && row.peak > 0) {
        plumbline(painter, left + kBarWidth * std::min(row.planned / row.budget, 1.0), middle - 6, middle + 6, t.text1);
    }
}

QRectF QueueDelegate::nearestButton(const QRectF& rect, const QueueRow& row) const {
    const double width = std::min(textWidth(row.button, tableFont()) + 20, rect.width() - 8);
    return {rect.left() + 4, rect.center().y() - 11, width, 22};
}

QRectF QueueDelegate::whyButton(const QRectF& rect, const QueueRow&) const {
    return {rect.left() + 104 + kBarWidth + 18, rect.center().y() - 9, 40, 18};
}

bool QueueDelegate::editorEvent(QEvent* event, QAbstractItemModel* model, const QStyleOptionViewItem& option,
                                const QModelIndex& index) {
    const auto& row = static_cast<const QueueModel*>(model)->row(index.row());
    if (event->type() != QEvent::MouseButtonRelease) {
        return QStyledItemDelegate::editorEvent(event, model, option, index);
    }
    const QPointF at = static_cast<QMouseEvent*>(event)->position();
    const QRectF rect(option.rect);
    if (row.kind == QueueRow::Kind::Fold) {
        emit foldWanted(index.row());
        return true;
    }
    if (index.column() == QueueModel::Peak && !row.button.isEmpty() && nearestButton(rect, row).contains(at)) {
        emit nearestWanted(row.number);
        return true;
    }
    if (index.column() == QueueModel::Peak && row.why && whyButton(rect, row).contains(at)) {
        emit whyWanted(row.number);
        return true;
    }
    return QStyledItemDelegate::editorEvent(event, model, option, index);
}

} // namespace vitrine::ui
