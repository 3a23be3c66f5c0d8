// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/timeline/trace_arrows.h"

#include <QEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>

namespace vitrine::ui {

namespace {

constexpr std::size_t kMostOps = 40;    ///< in view from which on only the lit op has arrows
constexpr std::size_t kMostArrows = 64; ///< of one op
constexpr double kHead = 4;

void drawArrow(QPainter& painter, const TraceArrows::Arrow& arrow, const QColor& color, double width) {
    const double bend = std::min(24.0, std::max(6.0, (arrow.to.y() - arrow.from.y()) / 2));
    QPainterPath path(arrow.from);
    path.cubicTo(arrow.from + QPointF(0, bend), arrow.to - QPointF(0, bend + kHead), arrow.to - QPointF(0, kHead));
    painter.setPen(QPen(color, width));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
    painter.setPen(Qt::NoPen);
    painter.setBrush(color);
    const QPointF head[] = {arrow.to, arrow.to + QPointF(-kHead / 1.3, -kHead - 1),
                            arrow.to + QPointF(kHead / 1.3, -kHead - 1)};
    painter.drawPolygon(head, 3);
}

} // namespace

TraceArrows::TraceArrows(TraceLane* scopes, TraceLane* kernels, LaneStack* stack)
    : QWidget(stack), scopes_(scopes), kernels_(kernels), stack_(stack) {
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setFocusPolicy(Qt::NoFocus);
    stack->installEventFilter(this);
    connect(stack, &LaneStack::axisChanged, this, QOverload<>::of(&QWidget::update));
    for (TraceLane* lane : {scopes, kernels}) {
        connect(lane, &Lane::collapsedChanged, this, QOverload<>::of(&QWidget::update));
        connect(lane, &Lane::pinnedChanged, this, QOverload<>::of(&QWidget::update));
        lane->installEventFilter(this);
    }
    setGeometry(stack->rect());
}

void TraceArrows::setTrace(KernelTracePtr trace) {
    trace_ = std::move(trace);
    update();
}

void TraceArrows::setLit(std::uint64_t scope) {
    lit_ = scope;
    update();
}

void TraceArrows::setShown(bool shown) {
    shown_ = shown;
    update();
}

bool TraceArrows::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Resize || event->type() == QEvent::Move || event->type() == QEvent::ChildAdded) {
        setGeometry(stack_->rect());
        raise(); // lanes that came later lie below
        update();
    }
    return QWidget::eventFilter(watched, event);
}

void TraceArrows::addArrows(std::uint64_t scope, bool lit, std::vector<Arrow>& arrows) const {
    const auto place = trace_->placeOfScope(scope);
    const auto from = place ? scopes_->spanRect(*place) : std::nullopt;
    if (!from) {
        return;
    }
    const std::vector<TracePlace> launched = trace_->kernelsOf(scope);
    const QPoint scopeAt = scopes_->mapTo(stack_, QPoint(0, 0)), kernelAt = kernels_->mapTo(stack_, QPoint(0, 0));
    if (kernelAt.y() < scopeAt.y()) {
        return; // the user pinned the kernels above their ops
    }
    for (std::size_t i = 0; i < std::min(launched.size(), kMostArrows); ++i) {
        if (const auto to = kernels_->spanRect(launched[i])) {
            // Arrows leave the op side by side, in the order of its kernels.
            const double part = (static_cast<double>(i) + 1) / (static_cast<double>(launched.size()) + 1);
            arrows.push_back({scopeAt + QPointF(from->left() + from->width() * part, from->bottom()),
                              kernelAt + QPointF(to->center().x(), to->top()), lit});
        }
    }
}

std::vector<TraceArrows::Arrow> TraceArrows::arrows() const {
    std::vector<Arrow> arrows;
    if (!shown_ || !trace_ || !scopes_ || !kernels_ || !kernels_->isVisible()) {
        return arrows;
    }
    std::vector<std::uint64_t> ops;
    // Where most is too small to see, arrows from the rest would show nothing.
    const bool readable = scopes_->drawn().small <= scopes_->drawn().drawn;
    for (const TraceHit& hit : scopes_->drawn().hits) {
        if (readable && hit.count == 1 && ops.size() <= kMostOps) {
            const TraceSpan& span = scopes_->span(hit.place);
            if (span.category >= 0 && span.scope != lit_) {
                ops.push_back(span.scope);
            }
        }
    }
    if (ops.size() <= kMostOps) {
        for (const std::uint64_t op : ops) {
            addArrows(op, false, arrows);
        }
    }
    if (lit_ != 0) {
        addArrows(lit_, true, arrows);
    }
    return arrows;
}

void TraceArrows::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const double gutter = scopes_ ? scopes_->gutter() : 0;
    painter.setClipRect(QRectF(gutter, 0, width() - gutter, height()));
    for (const Arrow& arrow : arrows()) {
        drawArrow(painter, arrow, arrow.lit ? themeTokens().accent : withAlpha(themeTokens().text3, 0.75),
                  arrow.lit ? 1.5 : 1.0);
    }
}

} // namespace vitrine::ui
