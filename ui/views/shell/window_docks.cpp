// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/window_docks.h"

#include <QDockWidget>
#include <QHBoxLayout>
#include <QListView>
#include <QPushButton>
#include <QStackedWidget>
#include <QTimer>

#include "ui/models/common/flat_tree.h"
#include "ui/views/shell/drawer.h"
#include "ui/views/shell/settings_file.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr int kLayoutVersion = 1;
constexpr int kLowHeight = 760;
constexpr int kHeadHeight = 28;
constexpr int kLowDockHeight = 220; ///< of the drawer, and of an inspector below the view

} // namespace

WindowDocks::WindowDocks(const ViewServices& context, const QString& settingsFile, QMainWindow* window)
    : QObject(window), window_(window), settingsFile_(settingsFile), inspectors_(new QStackedWidget(window)),
      heads_(new QStackedWidget(window)), frame_(new Surface(Surface::Fill::Panel, Surface::Left, window)) {
    window->setDockNestingEnabled(true);
    window->setCorner(Qt::TopRightCorner, Qt::RightDockWidgetArea);
    window->setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
    heads_->setFixedHeight(kHeadHeight);
    auto* column = new QHBoxLayout(frame_);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(inspectors_);
    inspectorDock_ = makeDock(QStringLiteral("inspector"), tr("Inspector"), frame_, makeInspectorHead());
    window->addDockWidget(Qt::RightDockWidgetArea, inspectorDock_);
    drawer_ = new Drawer(context, window);
    drawerDock_ = makeDock(QStringLiteral("drawer"), tr("Drawer"), drawer_, new QWidget(window));
    window->addDockWidget(Qt::BottomDockWidgetArea, drawerDock_);
    runsDock_ =
        makeDock(QStringLiteral("runs"), tr("Runs"), makeRuns(context.document), new DockHeader(tr("Runs"), window));
    window->addDockWidget(Qt::LeftDockWidgetArea, runsDock_);
    const std::pair<const char*, QDockWidget*> toggles[] = {
        {"panel.inspector", inspectorDock_}, {"panel.drawer", drawerDock_}, {"panel.runs", runsDock_}};
    for (const auto& [id, dock] : toggles) {
        connect(dock->toggleViewAction(), &QAction::toggled, context.actions->action(QString::fromLatin1(id)),
                &QAction::setChecked);
    }
}

QWidget* WindowDocks::makeInspectorHead() {
    auto* head = new Surface(Surface::Fill::Panel, Surface::Bottom, window_);
    head->setFixedHeight(kHeadHeight);
    auto* row = new QHBoxLayout(head);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    unfold_ = new QPushButton(head);
    unfold_->setFlat(true);
    unfold_->setFixedWidth(kHeadHeight);
    setControlHeight(unfold_, 24);
    unfold_->hide();
    connect(unfold_, &QPushButton::clicked, this, [this] { foldInspector(!folded_); });
    row->addWidget(unfold_);
    row->addWidget(heads_, 1);
    return head;
}

/// All runs of the session, newest first; Enter and a double click make one of them run A.
QWidget* WindowDocks::makeRuns(SessionDocument* document) {
    auto* list = new QListView(window_);
    list->setFrameShape(QFrame::NoFrame);
    list->setAccessibleName(tr("Runs"));
    auto* model = new FlatTreeModel(list);
    list->setModel(model);
    const auto fill = [document, model, list] {
        auto table = std::make_shared<FlatTree>();
        table->columns = {{tr("Run"), false}};
        for (auto run = document->runs().rbegin(); run != document->runs().rend(); ++run) {
            FlatNode node;
            node.key = static_cast<quint64>(run->id);
            node.cells = {FlatCell(QStringLiteral("#%1  %2").arg(run->id).arg(runTitle(*run)))};
            table->nodes.push_back(std::move(node));
        }
        model->setTree(std::move(table));
        list->setCurrentIndex(model->indexOfKey(static_cast<quint64>(document->runA())));
    };
    connect(document, &SessionDocument::runsChanged, list, fill);
    connect(document, &SessionDocument::selectionChanged, list, fill);
    connect(list, &QListView::activated, document, [document, model](const QModelIndex& index) {
        if (const FlatNode* node = model->node(index)) {
            document->setRunA(static_cast<sessions::RunId>(node->key));
        }
    });
    return list;
}

/// A dock that is moved and closed by commands and by its head alone.
QDockWidget* WindowDocks::makeDock(const QString& name, const QString& title, QWidget* content, QWidget* head) {
    auto* dock = new QDockWidget(title, window_);
    dock->setObjectName(name);
    dock->setFeatures(QDockWidget::DockWidgetClosable | QDockWidget::DockWidgetMovable);
    dock->setTitleBarWidget(head);
    dock->setWidget(content);
    return dock;
}

void WindowDocks::addView(View* view) {
    if (QWidget* inspector = view->inspector()) {
        QWidget* head = view->inspectorHeader();
        pages_[view] = inspectors_->addWidget(inspector);
        heads_->addWidget(head != nullptr ? head : new DockHeader(view->title(), heads_));
    }
}

bool WindowDocks::hasInspector(const View* view) const {
    return view != nullptr && pages_.contains(view) && view->wantsInspector();
}

void WindowDocks::show(View* view) {
    shown_ = view;
    if (const auto page = pages_.find(view); page != pages_.end()) {
        inspectors_->setCurrentIndex(page->second);
        heads_->setCurrentIndex(page->second);
    }
    restore();
}

void WindowDocks::followView(const View* view) {
    if (pages_.contains(view)) {
        inspectorDock_->setVisible(view->wantsInspector());
        if (view == shown_ && view->wantsInspector() && sizedFor_ != view) {
            sizeInspector(); // the view came without it, so that its width is that of the view before
        }
    }
}

QString WindowDocks::layoutKey(const View* view) const {
    return QStringLiteral("layout%1/%2").arg(narrow_ ? QStringLiteral("-narrow") : QString(), view->id());
}

void WindowDocks::keepLayout(const View* view) const {
    if (const auto keep = keptSettings(settingsFile_)) {
        keep->setValue(layoutKey(view), window_->saveState(kLayoutVersion));
    }
}

void WindowDocks::restore() {
    const auto keep = keptSettings(settingsFile_);
    const QByteArray state = keep ? keep->value(layoutKey(shown_)).toByteArray() : QByteArray();
    if (state.isEmpty() || !window_->restoreState(state, kLayoutVersion)) {
        layOut();
    } else {
        unfold_->setVisible(narrow_);
        foldInspector(narrow_ && folded_);
        sizedFor_ = shown_;
    }
    if (!hasInspector(shown_)) {
        inspectorDock_->hide();
    }
}

void WindowDocks::forgetLayouts() {
    if (const auto keep = keptSettings(settingsFile_)) {
        keep->remove(QStringLiteral("layout"));
        keep->remove(QStringLiteral("layout-narrow"));
    }
    layOut();
}

void WindowDocks::setNarrow(bool narrow) {
    if (narrow != narrow_) {
        narrow_ = narrow;
        layOut();
    }
}

/// The layout of a first start.
void WindowDocks::layOut() {
    const bool inspector = hasInspector(shown_);
    inspectorDock_->setVisible(inspector);
    drawerDock_->hide();
    runsDock_->hide();
    if (inspector) {
        window_->addDockWidget(narrow_ ? Qt::BottomDockWidgetArea : Qt::RightDockWidgetArea, inspectorDock_);
        unfold_->setVisible(narrow_);
        foldInspector(narrow_ && window_->height() < kLowHeight); // there the plot needs the height
        sizeInspector();
    }
    window_->resizeDocks({drawerDock_}, {kLowDockHeight}, Qt::Vertical);
}

void WindowDocks::sizeInspector() {
    sizedFor_ = shown_;
    if (!narrow_) {
        window_->resizeDocks({inspectorDock_}, {shown_->inspectorWidth()}, Qt::Horizontal);
    }
}

void WindowDocks::foldInspector(bool folded) {
    folded_ = folded;
    // A stack wants the height of its tallest page, whichever is shown: below a view the page scrolls instead.
    inspectors_->setMinimumHeight(narrow_ ? 1 : 0);
    // A hidden content would take the dock's width with it: it stays, without a height.
    inspectors_->setVisible(!folded);
    frame_->setMaximumHeight(folded ? 0 : QWIDGETSIZE_MAX);
    inspectorDock_->setMinimumHeight(folded ? heads_->height() : 0);
    inspectorDock_->setMaximumHeight(folded ? heads_->height() : QWIDGETSIZE_MAX);
    unfold_->setIcon(icon(folded ? QStringLiteral("chevron-right") : QStringLiteral("chevron-down")));
    unfold_->setAccessibleName(folded ? tr("Open the inspector") : tr("Fold the inspector"));
    unfold_->setToolTip(unfold_->accessibleName());
    if (!folded && narrow_) {
        // A dock that has just come into the area below gets its wished height when the window is laid out next.
        QTimer::singleShot(0, this, [this] {
            if (!folded_ && narrow_) {
                window_->resizeDocks({inspectorDock_}, {kLowDockHeight}, Qt::Vertical);
            }
        });
    }
}

void WindowDocks::toggleInspector() {
    if (inspectorDock_->isVisible() && folded_) {
        foldInspector(false);
    } else {
        inspectorDock_->setVisible(!inspectorDock_->isVisible() && pages_.contains(shown_));
    }
}

void WindowDocks::toggleDrawer() {
    drawerDock_->setVisible(!drawerDock_->isVisible());
}

void WindowDocks::toggleRuns() {
    runsDock_->setVisible(!runsDock_->isVisible());
}

Drawer* WindowDocks::openDrawer() {
    drawerDock_->show();
    return drawer_;
}

QList<QWidget*> WindowDocks::stops() const {
    QList<QWidget*> stops;
    if (inspectorDock_->isVisible() && !folded_) {
        stops << inspectors_->currentWidget();
    }
    if (drawerDock_->isVisible()) {
        stops << drawer_;
    }
    return stops;
}

QList<QWidget*> WindowDocks::focusOrder() const {
    return {heads_, inspectors_, drawer_};
}

} // namespace vitrine::ui
