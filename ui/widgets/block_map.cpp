// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/block_map.h"

#include <QKeyEvent>
#include <QPainter>

#include "ui/widgets/paint.h"

namespace vitrine::ui {

class BlockMap::Impl {
public:
    MaskMapPtr a, b;
    Side side = Side::A;
    Content content = Content::Mask;
    QString empty;
    bool linked = true;
    bool pinned = false;
    MaskRange range;
    std::optional<MaskCell> cell;
};

BlockMap::BlockMap(QWidget* parent) : PlotWidget(tr("Mask map"), parent), impl_(std::make_unique<Impl>()) {}
BlockMap::~BlockMap() = default;
void BlockMap::setMaps(MaskMapPtr a, MaskMapPtr b) {
    impl_->a = std::move(a);
    impl_->b = std::move(b);
    update();
}
void BlockMap::setSide(Side side) {
    impl_->side = side;
    update();
}
void BlockMap::setContent(Content content) {
    impl_->content = content;
    update();
}
BlockMap::Side BlockMap::side() const {
    return impl_->side;
}
BlockMap::Content BlockMap::content() const {
    return impl_->content;
}
MaskMapPtr BlockMap::shownMap() const {
    return impl_->side == Side::B ? impl_->b : impl_->a;
}
void BlockMap::setEmptyText(const QString& text) {
    impl_->empty = text;
    update();
}
void BlockMap::setLinked(bool linked) {
    impl_->linked = linked;
}
bool BlockMap::linked() const {
    return impl_->linked;
}
MaskRange BlockMap::visible() const {
    return impl_->range;
}
void BlockMap::showAll() {}
void BlockMap::showRange(const MaskRange& range) {
    impl_->range = range;
}
void BlockMap::zoomBy(double) {}
double BlockMap::pixelsPerToken() const {
    return 1;
}
std::optional<MaskCell> BlockMap::cell() const {
    return impl_->cell;
}
bool BlockMap::pinned() const {
    return impl_->pinned;
}
void BlockMap::goTo(MaskCell cell, bool pin) {
    impl_->cell = cell;
    impl_->pinned = pin;
    emit cellChanged();
}
void BlockMap::unpin() {
    impl_->pinned = false;
}
bool BlockMap::settled() const {
    return true;
}
QImage BlockMap::picture(double scale) const {
    return plotCanvas(size(), scale, themeTokens().canvas);
}
void BlockMap::saveSvg(const QString&) const {}
void BlockMap::savePng(const QString&, double) const {}
QByteArray BlockMap::svg() const {
    return {};
}
QString BlockMap::spoken() const {
    return {};
}
void BlockMap::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.fillRect(rect(), themeTokens().canvas);
    paintFocus(painter);
}
void BlockMap::resizeEvent(QResizeEvent* event) {
    PlotWidget::resizeEvent(event);
}
void BlockMap::wheelEvent(QWheelEvent* event) {
    PlotWidget::wheelEvent(event);
}
void BlockMap::mousePressEvent(QMouseEvent* event) {
    PlotWidget::mousePressEvent(event);
}
void BlockMap::mouseMoveEvent(QMouseEvent* event) {
    PlotWidget::mouseMoveEvent(event);
}
void BlockMap::mouseReleaseEvent(QMouseEvent* event) {
    PlotWidget::mouseReleaseEvent(event);
}
void BlockMap::mouseDoubleClickEvent(QMouseEvent* event) {
    PlotWidget::mouseDoubleClickEvent(event);
}
void BlockMap::leaveEvent(QEvent* event) {
    PlotWidget::leaveEvent(event);
}
void BlockMap::keyPressEvent(QKeyEvent* event) {
    PlotWidget::keyPressEvent(event);
}

} // namespace vitrine::ui
