// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/plots/sweep_plots.h"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/chart.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

namespace {

using engine::QueueState;

constexpr double kAxisLeft = 53, kTop = 26, kEdge = 12;
constexpr double kValueAxis = 44; ///< height of the values and what waits under a plot
constexpr double kRadius = 4.5;
constexpr int kShapes = 3; ///< circle, square, triangle; later lines begin again

QFont plotFont(bool bold = false) {
    return Theme::instance().font(TypeRole::Axis, bold);
}

struct ValueRange {
    double low = 0, high = 1, step = 0.1;
};

/// Round numbers around the losses; of the curves only those that count for comparing, not their first descent.
ValueRange rangeOf(std::vector<double> values) {
    ValueRange out;
    if (values.empty()) {
        return out;
    }
    const auto [low, high] = std::ranges::minmax(values);
    const double span = std::max(high - low, std::max(std::abs(high), 1e-3) * 0.02);
    const double raw = span / 3, power = std::pow(10, std::floor(std::log10(raw)));
    out.step = raw / power < 1.5 ? power : raw / power < 3.5 ? 2 * power : raw / power < 7.5 ? 5 * power : 10 * power;
    out.low = std::floor((low - span * 0.08) / out.step * 2) * out.step / 2;
    out.high = std::ceil((high + span * 0.08) / out.step * 2) * out.step / 2;
    return out;
}

std::vector<qreal> dashOf(int series) {
    switch (series % kShapes) {
    case 0:
        return {2, 2};
    case 1:
        return {};
    default:
        return {6, 3};
    }
}

QPen linePen(const QColor& color, double width, const std::vector<qreal>& dash) {
    QPen pen(color, width);
    if (!dash.empty()) {
        pen.setDashPattern(QList<qreal>(dash.begin(), dash.end()));
    }
    pen.setCapStyle(Qt::FlatCap);
    return pen;
}

void drawShape(QPainter& painter, int series, QPointF at, double radius, const QBrush& fill, const QPen& pen) {
    painter.setPen(pen);
    painter.setBrush(fill);
    switch (series % kShapes) {
    case 0:
        painter.drawEllipse(at, radius, radius);
        break;
    case 1:
        painter.drawRect(QRectF(at.x() - radius + 0.5, at.y() - radius + 0.5, 2 * radius - 1, 2 * radius - 1));
        break;
    default:
        painter.drawPolygon(QPolygonF({{at.x(), at.y() - radius - 1},
                                       {at.x() + radius + 1, at.y() + radius - 1},
                                       {at.x() - radius - 1, at.y() + radius - 1}}));
    }
}

void drawCross(QPainter& painter, QPointF at, const QColor& color) {
    painter.setPen(QPen(color, 2));
    painter.drawLine(at + QPointF(-4, -4), at + QPointF(4, 4));
    painter.drawLine(at + QPointF(4, -4), at + QPointF(-4, 4));
}

void drawValueAxis(QPainter& painter, const ValueRange& range, double left, double right, double top, double bottom) {
    const ThemeTokens& t = themeTokens();
    const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(range.step) - 1e-9)), 0, 6);
    for (double value = std::ceil(range.low / range.step - 1e-9) * range.step; value <= range.high;
         value += range.step) {
        const double y = std::round(bottom - (value - range.low) / (range.high - range.low) * (bottom - top));
        hairline(painter, left, right, y, t.line0);
        drawText(painter, QRectF(0, y - 8, left - 7, 16), Qt::AlignRight | Qt::AlignVCenter,
                 QString::number(value, 'f', decimals), t.text3, plotFont());
    }
    hairline(painter, left, right, bottom, t.line1);
}

QString valueWords(double value) {
    return QString::number(value, 'f', 3);
}

double heightOf(const ValueRange& range, double value, double top, double bottom) {
    return bottom - (value - range.low) / (range.high - range.low) * (bottom - top);
}

ValueRange valueRange(const SweepPicture& sweep) {
    std::vector<double> values;
    for (const SweepCurve& curve : sweep.curves) {
        if (curve.value) {
            values.push_back(*curve.value);
        }
    }
    return rangeOf(std::move(values));
}

ValueRange stepRange(const SweepPicture& sweep) {
    std::vector<double> values;
    for (const SweepCurve& curve : sweep.curves) {
        for (std::size_t i = curve.points.size() > 3 ? 1 : 0; i < curve.points.size(); ++i) {
            values.push_back(curve.points[i].value);
        }
    }
    return rangeOf(std::move(values));
}

} // namespace

void SweepPlot::setSweep(SweepPicture sweep) {
    sweep_ = std::move(sweep);
    forgetCurrentItem();
    invalidate();
}

void SweepPlot::setChosen(std::int64_t number) {
    if (std::exchange(chosen_, number) != number) {
        invalidate();
    }
}

std::int64_t SweepPlot::numberOf(int item) const {
    return item < 0 || item >= itemCount() ? 0 : sweep_.curves[static_cast<std::size_t>(item)].number;
}

int SweepPlot::bestSeries() const {
    const auto best = std::ranges::find(sweep_.curves, true, &SweepCurve::best);
    return best == sweep_.curves.end() ? -1 : best->series;
}

int SweepPlot::itemAt(QPointF position) const {
    constexpr double kReach = 12;
    int nearest = -1;
    double least = kReach;
    for (int i = 0; i < itemCount(); ++i) {
        const QPointF at = pointOf(sweep_.curves[static_cast<std::size_t>(i)], size());
        const double distance = std::hypot(at.x() - position.x(), at.y() - position.y());
        if (distance < least) {
            least = distance;
            nearest = i;
        }
    }
    return nearest;
}

QString SweepPlot::itemText(int item) const {
    const SweepCurve& curve = sweep_.curves[static_cast<std::size_t>(item)];
    QString out =
        runText(curve.number) + QLatin1Char(' ') + sweep_.axis + QLatin1Char(' ') + sweep_.values.value(curve.place);
    const QString series = sweep_.series.value(curve.series);
    out += series.isEmpty() ? QString() : QStringLiteral(", ") + series;
    out += QStringLiteral(": ") + textOf(engine::queueStateWords(curve.state));
    return curve.value ? out + (sweep_.rewards ? tr(", reward %1 at step %2") : tr(", loss %1 at step %2"))
                                   .arg(valueWords(*curve.value), countText(curve.step))
                       : out;
}

QRectF SweepPlot::itemFrame(int item) const {
    const QPointF at = pointOf(sweep_.curves[static_cast<std::size_t>(item)], size());
    return at.x() < 0 ? QRectF() : QRectF(at.x() - 8, at.y() - 8, 16, 16);
}

SweepValuePlot::SweepValuePlot(QWidget* parent) : SweepPlot(tr("Loss or reward over values"), parent) {}

QPointF SweepValuePlot::pointOf(const SweepCurve& curve, const QSizeF& size) const {
    if (!curve.value) {
        return {-100, -100};
    }
    const double left = kAxisLeft + 28, right = size.width() - kEdge - 22, bottom = size.height() - kValueAxis;
    const auto last = static_cast<double>(std::max<qsizetype>(sweep_.values.size() - 1, 1));
    const double x = sweep_.values.size() == 1 ? (left + right) / 2 : left + curve.place / last * (right - left);
    return {x, heightOf(valueRange(sweep_), *curve.value, kTop, bottom)};
}

QImage SweepValuePlot::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const double bottom = size.height() - kValueAxis;
    drawText(painter, QRectF(11, 3, size.width() - 20, 18), Qt::AlignLeft | Qt::AlignVCenter,
             sweep_.rewards     ? (sweep_.evaluated ? tr("Evaluation reward, mean, at the last step or newest")
                                                    : tr("Reward, mean, of the last step"))
             : sweep_.evaluated ? tr("Evaluation loss, nats per token, at the last step or newest")
                                : tr("Loss, nats per token, after the last step"),
             t.text2, plotFont());
    drawValueAxis(painter, valueRange(sweep_), kAxisLeft, size.width() - kEdge, kTop, bottom);
    for (qsizetype i = 0; i < sweep_.values.size(); ++i) {
        SweepCurve at;
        at.place = static_cast<int>(i);
        at.value = 0;
        const double x = pointOf(at, size).x();
        plumbline(painter, x, bottom, bottom + 4, t.line2);
        drawText(painter, QRectF(x - 40, bottom + 4, 80, 16), Qt::AlignCenter, sweep_.values[i], t.text2, plotFont());
    }
    painter.setRenderHint(QPainter::Antialiasing);
    paintLines(painter, size);
    for (const SweepCurve& curve : sweep_.curves) {
        paintPoint(painter, curve, size);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
    paintWaiting(painter, size);
    return image;
}

void SweepValuePlot::paintLines(QPainter& painter, const QSizeF& size) const {
    const ThemeTokens& t = themeTokens();
    LabelPlaces places;
    for (int series = 0; series < static_cast<int>(sweep_.series.size()); ++series) {
        std::vector<const SweepCurve*> line;
        for (const SweepCurve& curve : sweep_.curves) {
            if (curve.series == series && curve.value) {
                line.push_back(&curve);
            }
        }
        std::ranges::sort(line, {}, &SweepCurve::place);
        const bool best = series == bestSeries();
        const QColor color = best ? t.accent : t.text2;
        for (std::size_t i = 1; i < line.size(); ++i) {
            // Points at fewer steps than the others are not comparable with them.
            const bool whole = line[i]->step == line[i - 1]->step;
            painter.setPen(whole ? linePen(color, best ? 2 : 1.5, dashOf(series))
                                 : linePen(withAlpha(color, 0.6), 1, {1, 3}));
            painter.drawLine(pointOf(*line[i - 1], size), pointOf(*line[i], size));
        }
        if (!line.empty() && !sweep_.series[series].isEmpty()) {
            const QPointF at = pointOf(*line.front(), size);
            const double width = textWidth(sweep_.series[series], plotFont(best));
            for (const double dy : {-20.0, 6.0, -34.0, 20.0}) {
                const QRectF words(std::max(at.x() - width / 2, kAxisLeft + 2), at.y() + dy, width + 2, 14);
                if (places.take(words)) {
                    drawText(painter, words, Qt::AlignCenter, sweep_.series[series], color, plotFont(best));
                    break;
                }
            }
        }
    }
}

void SweepValuePlot::paintPoint(QPainter& painter, const SweepCurve& curve, const QSizeF& size) const {
    if (!curve.value) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const QPointF at = pointOf(curve, size);
    const QColor color = curve.series == bestSeries() ? t.accent : t.text2;
    const auto beside = [&](const QString& text, const QColor& ink, bool bold) {
        const double width = textWidth(text, plotFont(bold)) + 2;
        const bool left = at.x() - width - 12 > kAxisLeft;
        drawText(painter, QRectF(left ? at.x() - width - 12 : at.x() + 12, at.y() - 8, width, 16), Qt::AlignCenter,
                 text, ink, plotFont(bold));
    };
    if (curve.state == QueueState::Running) {
        drawShape(painter, curve.series, at, kRadius, t.canvas, QPen(t.accent, 2));
        painter.setBrush(Qt::NoBrush);
        painter.setPen(withAlpha(t.accent, 0.5));
        painter.drawEllipse(at, 8.5, 8.5);
        beside(tr("%1 at %2: %3").arg(runText(curve.number), countText(curve.step), valueWords(*curve.value)), t.text1,
               true);
    } else if (curve.state == QueueState::Finished) {
        drawShape(painter, curve.series, at, kRadius, color, QPen(t.canvas, 1));
    } else {
        drawCross(painter, at, curve.state == QueueState::EndedByRule ? t.warn : t.text3);
        beside(tr("%1 ended at %2").arg(runText(curve.number), countText(curve.step)),
               curve.state == QueueState::EndedByRule ? t.warn : t.text3, false);
    }
    painter.setBrush(Qt::NoBrush);
    if (curve.best) {
        painter.setPen(QPen(t.text1, 1.5));
        painter.drawRect(QRectF(at.x() - 8.5, at.y() - 8.5, 17, 17));
        const QString words = tr("best %1").arg(valueWords(*curve.value));
        if (at.y() + 24 > size.height() - kValueAxis) { // below it stand the values of the axis
            beside(words, t.text1, true);
        } else {
            drawText(painter, QRectF(at.x() - 50, at.y() + 10, 100, 14), Qt::AlignCenter, words, t.text1,
                     plotFont(true));
        }
    } else if (curve.number == chosen_) {
        painter.setPen(QPen(t.line2, 2));
        painter.drawRect(QRectF(at.x() - 8, at.y() - 8, 16, 16));
    }
}

void SweepValuePlot::paintWaiting(QPainter& painter, const QSizeF& size) const {
    const ThemeTokens& t = themeTokens();
    const double y = size.height() - 13;
    hairline(painter, 0, size.width(), y - 11, t.line0);
    drawText(painter, QRectF(11, y - 8, 60, 16), Qt::AlignLeft | Qt::AlignVCenter, tr("waiting"), t.text3, plotFont());
    std::map<int, int> shown;
    painter.setRenderHint(QPainter::Antialiasing);
    for (const SweepCurve& curve : sweep_.curves) {
        if (engine::hasEnded(curve.state) || curve.state == QueueState::Running) {
            continue;
        }
        SweepCurve at = curve;
        at.value = 0;
        const double x = pointOf(at, size).x() - 4 + 14 * shown[curve.place]++;
        drawShape(painter, curve.series, {x, y}, 4, Qt::NoBrush,
                  QPen(curve.state == QueueState::DoesNotFit ? t.bad : t.text2, 1.5));
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
}

SweepStepPlot::SweepStepPlot(QWidget* parent) : SweepPlot(tr("Evaluations over steps"), parent) {}

QPointF SweepStepPlot::place(double step, double value, const QSizeF& size) const {
    const double left = kAxisLeft - 5, right = size.width() - kEdge - 34, bottom = size.height() - 26;
    return {left + step / static_cast<double>(std::max<std::int64_t>(sweep_.steps, 1)) * (right - left),
            heightOf(stepRange(sweep_), value, kTop, bottom)};
}

QPointF SweepStepPlot::pointOf(const SweepCurve& curve, const QSizeF& size) const {
    return curve.points.empty() ? QPointF(-100, -100)
                                : place(static_cast<double>(curve.points.back().step), curve.points.back().value, size);
}

QImage SweepStepPlot::picture(const QSizeF& size, double dpr) const {
    const ThemeTokens& t = themeTokens();
    QImage image = plotCanvas(size, dpr, t.canvas);
    QPainter painter(&image);
    const double left = kAxisLeft - 5, bottom = size.height() - 26;
    drawText(painter, QRectF(11, 3, size.width() - 20, 18), Qt::AlignLeft | Qt::AlignVCenter,
             sweep_.rule ? (sweep_.rewards ? tr("The same over steps; dashed: best − %1, the rule")
                                           : tr("The same over steps; dashed: best + %1, the rule"))
                               .arg(sweep_.rule->above)
                         : tr("The same over steps"),
             t.text2, plotFont());
    if (!sweep_.evaluated) {
        drawText(painter, QRectF(left, kTop, size.width() - left - kEdge, bottom - kTop), Qt::AlignCenter,
                 tr("No run has been evaluated."), t.text3, plotFont());
        return image;
    }
    drawValueAxis(painter, stepRange(sweep_), left, size.width() - kEdge, kTop, bottom);
    for (const double step : roundTicks(static_cast<double>(sweep_.steps), 5)) {
        if (step > static_cast<double>(sweep_.steps)) {
            continue;
        }
        const double x = place(step, 0, size).x();
        plumbline(painter, x, bottom, bottom + 4, t.line2);
        const QString words = countText(std::llround(step));
        drawText(painter, QRectF(x - 40, bottom + 4, 80, 16), Qt::AlignCenter, step == 0 ? tr("step 0") : words,
                 t.text2, plotFont());
    }
    painter.setClipRect(QRectF(left, kTop, size.width() - left, bottom - kTop));
    painter.setRenderHint(QPainter::Antialiasing);
    paintRule(painter, size);
    std::vector<const SweepCurve*> order; // the best and the running one above the others
    for (const SweepCurve& curve : sweep_.curves) {
        order.push_back(&curve);
    }
    std::ranges::stable_sort(order, {}, [](const SweepCurve* c) { return c->best || c->state == QueueState::Running; });
    for (const SweepCurve* curve : order) {
        paintCurve(painter, *curve, size);
    }
    return image;
}

void SweepStepPlot::paintRule(QPainter& painter, const QSizeF& size) const {
    if (!sweep_.rule) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    QPolygonF edge;
    for (const engine::QueueEvaluation& best : sweep_.best) {
        if (best.step >= sweep_.rule->from) {
            edge << place(static_cast<double>(best.step), best.value + (sweep_.rewards ? -1 : 1) * sweep_.rule->above,
                          size);
        }
    }
    if (edge.size() < 2) {
        return;
    }
    QPolygonF area = edge;
    const double worst = sweep_.rewards ? size.height() - 26 : kTop;
    area << QPointF(edge.back().x(), worst) << QPointF(edge.front().x(), worst);
    painter.setPen(Qt::NoPen);
    painter.setBrush(withAlpha(t.warn, 0.07));
    painter.drawPolygon(area);
    painter.setPen(linePen(t.warn, 1, {6, 3}));
    painter.setBrush(Qt::NoBrush);
    painter.drawPolyline(edge);
    const QRectF words(edge.front().x(), sweep_.rewards ? worst - 24 : kTop + 24, edge.back().x() - edge.front().x(),
                       16);
    drawText(painter, words, Qt::AlignCenter, tr("the rule ends runs here"), t.warn, plotFont());
}

void SweepStepPlot::paintCurve(QPainter& painter, const SweepCurve& curve, const QSizeF& size) const {
    if (curve.points.empty()) {
        return;
    }
    const ThemeTokens& t = themeTokens();
    const bool running = curve.state == QueueState::Running, on = curve.best || running || curve.number == chosen_;
    const QColor color = curve.best ? t.accent : running || curve.number == chosen_ ? t.text1 : t.line2;
    QPolygonF line;
    for (const engine::QueueEvaluation& point : curve.points) {
        line << place(static_cast<double>(point.step), point.value, size);
    }
    painter.setBrush(Qt::NoBrush);
    painter.setPen(linePen(color, on ? 2 : 1, on ? std::vector<qreal>() : dashOf(curve.series)));
    painter.drawPolyline(line);
    const QPointF end = line.back();
    QColor ink = color;
    if (curve.state == QueueState::EndedByRule) {
        drawCross(painter, end, t.warn);
        ink = t.warn;
    } else if (running) {
        drawShape(painter, 0, end, kRadius, t.canvas, QPen(t.text1, 2));
    }
    if (on || curve.state == QueueState::EndedByRule) {
        drawText(painter, QRectF(end.x() + 9, end.y() - 12, 40, 16), Qt::AlignLeft | Qt::AlignVCenter,
                 runText(curve.number), ink, plotFont(true));
    }
}

} // namespace vitrine::ui
