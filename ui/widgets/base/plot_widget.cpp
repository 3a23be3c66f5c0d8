// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/plot_widget.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QPainter>
#include <cmath>

#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

class AccessiblePlot final : public QAccessibleWidget {
public:
    explicit AccessiblePlot(PlotWidget* plot)
        : QAccessibleWidget(plot, QAccessible::Chart, plot->title()), plot_(plot) {}

    QString text(QAccessible::Text kind) const override {
        if (kind == QAccessible::Name) {
            return plot_->title();
        }
        return kind == QAccessible::Value || kind == QAccessible::Description ? plot_->spoken()
                                                                              : QAccessibleWidget::text(kind);
    }

private:
    PlotWidget* plot_;
};

QAccessibleInterface* makeAccessible(const QString&, QObject* object) {
    auto* plot = qobject_cast<PlotWidget*>(object);
    return plot != nullptr ? new AccessiblePlot(plot) : nullptr;
}

} // namespace

PlotWidget::PlotWidget(const QString& title, QWidget* parent) : QWidget(parent), title_(title) {
    static const bool kInstalled = [] {
        QAccessible::installFactory(makeAccessible);
        return true;
    }();
    Q_UNUSED(kInstalled);
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAccessibleName(title);
}

void PlotWidget::setTitle(const QString& title) {
    title_ = title;
    setAccessibleName(title);
}

void PlotWidget::paintFocus(QPainter& painter) const {
    if (hasFocus()) {
        painter.setPen(QPen(themeTokens().accent, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(QRectF(rect()).adjusted(2, 2, -2, -2));
    }
}

void PlotWidget::announce() {
    const QString words = spoken();
    emit readoutChanged(words);
    if (QAccessible::isActive()) {
        QAccessibleValueChangeEvent event(this, words);
        QAccessible::updateAccessibility(&event);
    }
}

void PlotWidget::focusInEvent(QFocusEvent* event) {
    QWidget::focusInEvent(event);
    update();
}

void PlotWidget::focusOutEvent(QFocusEvent* event) {
    QWidget::focusOutEvent(event);
    update();
}

PicturePlot::PicturePlot(const QString& title, QWidget* parent) : PlotWidget(title, parent) {
    connect(&Theme::instance(), &Theme::changed, this, &PicturePlot::invalidate);
}

void PicturePlot::invalidate() {
    dirty_ = true;
    update();
}

void PicturePlot::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    // A picture taken for another ratio (View::picture) must not be scaled up from the window's.
    const double dpr = painter.device()->devicePixelRatioF();
    const QSize pixels(static_cast<int>(std::lround(width() * dpr)), static_cast<int>(std::lround(height() * dpr)));
    if (dirty_ || cache_.size() != pixels || cache_.devicePixelRatio() != dpr) {
        cache_ = picture(size(), dpr);
        dirty_ = false;
    }
    painter.drawImage(QPointF(0, 0), cache_);
    paintOver(painter);
    paintFocus(painter);
}

QImage plotCanvas(const QSizeF& size, double dpr, const QColor& fill) {
    QImage image(std::max(1, static_cast<int>(std::lround(size.width() * dpr))),
                 std::max(1, static_cast<int>(std::lround(size.height() * dpr))), QImage::Format_ARGB32_Premultiplied);
    image.setDevicePixelRatio(dpr);
    image.fill(fill);
    return image;
}

} // namespace vitrine::ui
