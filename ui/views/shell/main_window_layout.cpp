// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Where things stand in the main window: widths that change with the window, docks, and the way of the focus.
#include <QAbstractButton>
#include <QApplication>
#include <QDockWidget>
#include <QLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QStackedWidget>

#include "ui/views/shell/device_strip.h"
#include "ui/views/shell/drawer.h"
#include "ui/views/shell/main_window.h"
#include "ui/views/shell/rail.h"
#include "ui/widgets/base/icons.h"

namespace vitrine::ui {

namespace {

constexpr int kLayoutVersion = 1;
constexpr int kNarrowWidth = 1200;
constexpr int kTinyWidth = 1100;
constexpr int kLowHeight = 760;

} // namespace

void MainWindow::saveLayout(const QString& view) {
    if (const auto keep = settings()) {
        keep->setValue(QStringLiteral("layout%1/%2").arg(narrow_ ? QStringLiteral("-narrow") : QString(), view),
                       saveState(kLayoutVersion));
    }
}

void MainWindow::restoreLayout(const QString& view) {
    const auto keep = settings();
    const QByteArray state =
        keep ? keep->value(QStringLiteral("layout%1/%2").arg(narrow_ ? QStringLiteral("-narrow") : QString(), view))
                   .toByteArray()
             : QByteArray();
    if (state.isEmpty() || !restoreState(state, kLayoutVersion)) {
        defaultLayout();
    } else {
        unfold_->setVisible(narrow_);
        foldInspector(narrow_ && inspectorFolded_);
    }
    if (!inspectorPage_.contains(view) || !currentView()->wantsInspector()) {
        inspectorDock_->hide();
    }
}

void MainWindow::updateForSize() {
    const bool narrow = width() < kNarrowWidth;
    rail_->setNarrow(narrow);
    device_->setNarrow(narrow);
    runAgain_->setText(narrow ? QString() : tr("Run again"));
    runAgain_->setToolTip(tr("Run again"));
    runAgain_->setAccessibleName(tr("Run again"));
    stop_->setText(narrow ? QString() : tr("Stop"));
    stop_->setToolTip(tr("Stop"));
    stop_->setAccessibleName(tr("Stop"));
    const bool tiny = width() < kTinyWidth;
    search_->setFixedWidth(tiny && !search_->hasFocus() && search_->text().isEmpty() ? 30 : 224);
    searchHint_->setVisible(search_->width() > 100);
    setSearchHint(searchHint_->text());
    if (narrow != narrow_) {
        narrow_ = narrow;
        defaultLayout();
    }
}

void MainWindow::fitDeviceStrip() {
    // Its parts go before the titles of runs are cut.
    const QLayout* row = tools_->layout();
    int others = row->contentsMargins().left() + row->contentsMargins().right();
    for (int i = 0; i < row->count(); ++i) {
        QLayoutItem* item = row->itemAt(i);
        if (item->spacerItem() != nullptr) {
            others += item->sizeHint().width();
        } else if (item->widget() != device_ && !item->isEmpty()) {
            others += item->sizeHint().width() + row->spacing();
        }
    }
    device_->fit(tools_->width() - others);
}

void MainWindow::defaultLayout() {
    View* now = currentView();
    const bool hasInspector = now != nullptr && inspectorPage_.contains(now->id()) && now->wantsInspector();
    inspectorDock_->setVisible(hasInspector);
    drawerDock_->hide();
    runsDock_->hide();
    if (hasInspector) {
        const bool low = narrow_;
        addDockWidget(low ? Qt::BottomDockWidgetArea : Qt::RightDockWidgetArea, inspectorDock_);
        unfold_->setVisible(low);
        foldInspector(low && height() < kLowHeight); // there the plot needs the height
        if (!low) {
            resizeDocks({inspectorDock_}, {now->inspectorWidth()}, Qt::Horizontal);
        }
    }
    resizeDocks({drawerDock_}, {220}, Qt::Vertical);
}

void MainWindow::foldInspector(bool folded) {
    inspectorFolded_ = folded;
    // A hidden content would take the dock's width with it: it stays, without a height.
    inspectorStack_->setVisible(!folded);
    inspectorFrame_->setMaximumHeight(folded ? 0 : QWIDGETSIZE_MAX);
    inspectorDock_->setMinimumHeight(folded ? inspectorHeads_->height() : 0);
    inspectorDock_->setMaximumHeight(folded ? inspectorHeads_->height() : QWIDGETSIZE_MAX);
    unfold_->setIcon(icon(folded ? QStringLiteral("chevron-right") : QStringLiteral("chevron-down")));
    unfold_->setAccessibleName(folded ? tr("Open the inspector") : tr("Fold the inspector"));
    unfold_->setToolTip(unfold_->accessibleName());
    if (!folded && narrow_) {
        resizeDocks({inspectorDock_}, {220}, Qt::Vertical);
    }
}

void MainWindow::moveFocus(int direction) {
    QList<QWidget*> stops = {pickerA_, rail_->buttonOf(actions_->action(QStringLiteral("go.") + currentView()->id()))};
    stops << currentView()->header()->findChildren<QAbstractButton*>().value(0) << currentView()->focusStops();
    if (inspectorDock_->isVisible() && !inspectorFolded_) {
        stops << inspectorStack_->currentWidget();
    }
    if (drawerDock_->isVisible()) {
        stops << drawer_;
    }
    stops.removeAll(nullptr);
    const QWidget* focus = QApplication::focusWidget();
    int at = -1;
    for (int i = 0; i < stops.size(); ++i) {
        if (focus != nullptr && (stops[i] == focus || stops[i]->isAncestorOf(focus))) {
            at = i;
        }
    }
    at = at < 0 ? (direction > 0 ? 0 : static_cast<int>(stops.size()) - 1)
                : (at + direction + static_cast<int>(stops.size())) % static_cast<int>(stops.size());
    QWidget* target = stops[at];
    if (target->focusPolicy() == Qt::NoFocus) {
        for (QWidget* child : target->findChildren<QWidget*>()) {
            if (child->focusPolicy() & Qt::TabFocus && child->isVisible()) {
                target = child;
                break;
            }
        }
    }
    target->setFocus(Qt::TabFocusReason);
}

} // namespace vitrine::ui
