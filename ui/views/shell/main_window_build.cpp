// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// How the main window is put together; what it does stands in main_window.cpp.
#include <QActionGroup>
#include <QCheckBox>
#include <QDockWidget>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QStackedWidget>
#include <nlohmann/json.hpp>

#include "engine/workload/workload_table.h"
#include "ui/models/common/flat_tree.h"
#include "ui/models/common/format.h"
#include "ui/views/shell/command_palette.h"
#include "ui/views/shell/device_strip.h"
#include "ui/views/shell/drawer.h"
#include "ui/views/shell/main_window.h"
#include "ui/views/shell/rail.h"
#include "ui/views/shell/shortcuts_panel.h"
#include "ui/views/shell/status_row.h"
#include "ui/views/shell/view_list.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

/// The status bar of 24 px with a line above it.
/// A dock whose content sits on a panel with a line at the window's side.
QDockWidget* makeDock(const QString& name, const QString& title, QWidget* content, QWidget* head, QMainWindow* window) {
    auto* dock = new QDockWidget(title, window);
    dock->setObjectName(name);
    dock->setFeatures(QDockWidget::DockWidgetClosable | QDockWidget::DockWidgetMovable);
    dock->setTitleBarWidget(head);
    dock->setWidget(content);
    return dock;
}

} // namespace

void MainWindow::buildMenus() {
    QMenuBar* bar = menuBar();
    bar->setFixedHeight(26);
    bar->setNativeMenuBar(false);
    const auto menu = [&](const QString& title, const QStringList& ids) {
        QMenu* made = bar->addMenu(title);
        for (const QString& id : ids) {
            if (id.isEmpty()) {
                made->addSeparator();
            } else if (QAction* action = actions_->action(id)) {
                made->addAction(action);
            }
        }
        return made;
    };
    const QString none;
    QMenu* file = menu(tr("File"), {"file.open", "file.new-session"});
    recentMenu_ = file->addMenu(tr("Open recent"));
    for (const char* id : {"", "file.export-image", "", "file.close", "file.quit"}) {
        *id == '\0' ? (void)file->addSeparator() : file->addAction(actions_->action(QString::fromLatin1(id)));
    }
    menu(tr("Edit"), {"edit.undo", "edit.redo", none, "edit.copy", "edit.copy-why", none, "edit.find", "edit.find-next",
                      "edit.find-previous", none, "edit.rename"});
    QMenu* viewMenu = menu(tr("View"), {"view.table", "view.time-unit", none, "zoom.in", "zoom.out", "zoom.fit",
                                        "zoom.all", "zoom.back", "zoom.follow", none, "lane.pin", "lane.collapse", none,
                                        "panel.inspector", "panel.drawer", "panel.runs", "panel.reset", none});
    QMenu* theme = viewMenu->addMenu(tr("Theme"));
    auto* themes = new QActionGroup(this);
    for (const char* id : {"theme.system", "theme.light", "theme.dark"}) {
        QAction* action = actions_->action(QString::fromLatin1(id));
        themes->addAction(action);
        theme->addAction(action);
    }
    menu(tr("Run"), {"run.start", "run.again", "run.stop"});
    QStringList go = {"go.peak-next", "go.peak-previous", "go.oom", none};
    for (const ViewEntry& entry : viewEntries()) {
        go << QStringLiteral("go.") + QString::fromLatin1(entry.id);
    }
    menu(tr("Go"), go + QStringList{none, "go.back", "go.forward"});
    menu(tr("Tools"),
         {"tools.palette", none, "compare.baseline", "compare.swap", none, "measure.filter", "measure.clear-filter"});
    menu(tr("Help"), {"help.shortcuts", none, "help.about"});
    sessionName_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, bar);
    sessionName_->setContentsMargins(8, 0, 12, 0);
    sessionName_->setFixedHeight(25);
    sessionName_->setElide(true); // paints in its own colour: a menu bar gives its corner another palette
    bar->setCornerWidget(sessionName_, Qt::TopRightCorner);
    for (QAction* action : actions_->all()) {
        addAction(action); // shortcuts work wherever the focus is
    }
}

void MainWindow::buildToolBar() {
    toolBar_ = new EdgeBar(tr("Tools"), Qt::BottomEdge, this);
    toolBar_->setObjectName(QStringLiteral("toolbar"));
    toolBar_->setFixedHeight(40);
    auto* content = new QWidget(toolBar_);
    tools_ = content;
    auto* row = new QHBoxLayout(content);
    row->setContentsMargins(12, 0, 12, 1);
    row->setSpacing(8);
    pickerA_ = new RunPicker(QLatin1Char('A'), document_, content);
    pickerB_ = new RunPicker(QLatin1Char('B'), document_, content);
    row->addWidget(pickerA_);
    row->addWidget(pickerB_);
    runAgain_ = new QPushButton(icon(QStringLiteral("run-again")), tr("Run again"), content);
    stop_ = new QPushButton(icon(QStringLiteral("stop")), tr("Stop"), content);
    connect(runAgain_, &QPushButton::clicked, actions_->action(QStringLiteral("run.again")), &QAction::trigger);
    connect(stop_, &QPushButton::clicked, actions_->action(QStringLiteral("run.stop")), &QAction::trigger);
    runAgain_->setObjectName(QStringLiteral("runAgain"));
    row->addWidget(runAgain_);
    row->addWidget(stop_);
    auto* line = new Surface(Surface::Fill::Window, Surface::Left, content);
    line->setFixedSize(1, 20);
    row->addSpacing(4);
    row->addWidget(line);
    row->addSpacing(4);
    crumbs_ = new Crumbs(time_, content);
    row->addWidget(crumbs_);
    whyOom_ = new QPushButton(icon(QStringLiteral("warning"), themeTokens().bad), tr("Why out of memory"), content);
    setAlarming(whyOom_);
    setExtraWidth(whyOom_, 22);
    auto* key = new KeyHint(QStringLiteral("O"), whyOom_);
    key->setAlarming(true);
    auto* keyRow = new QHBoxLayout(whyOom_);
    keyRow->setContentsMargins(0, 0, 7, 0);
    keyRow->addStretch(1);
    keyRow->addWidget(key);
    connect(whyOom_, &QPushButton::clicked, actions_->action(QStringLiteral("go.oom")), &QAction::trigger);
    whyOom_->hide();
    row->addWidget(whyOom_);
    row->addStretch(1);
    search_ = new QLineEdit(content);
    search_->setObjectName(QStringLiteral("search"));
    search_->setPlaceholderText(tr("Search"));
    search_->setAccessibleName(tr("Search"));
    search_->setFixedHeight(26);
    search_->setFixedWidth(224);
    search_->addAction(icon(QStringLiteral("search")), QLineEdit::LeadingPosition);
    searchHint_ = new TextLabel({}, TypeRole::Axis, TextColor::Text3, false, search_);
    searchHint_->setAttribute(Qt::WA_TransparentForMouseEvents);
    searchHint_->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    searchHint_->setGeometry(224 - 98, 0, 90, 26);
    searchKey_ = new KeyHint(QStringLiteral("/"), search_);
    searchKey_->setAttribute(Qt::WA_TransparentForMouseEvents);
    const QSize keySize = searchKey_->sizeHint();
    searchKey_->setGeometry(224 - 6 - keySize.width(), (26 - keySize.height()) / 2, keySize.width(), keySize.height());
    search_->installEventFilter(this);
    row->addWidget(search_);
    device_ = new DeviceStrip(document_, devices_, content);
    row->addWidget(device_);
    content->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    toolBar_->addWidget(content);
    addToolBar(Qt::TopToolBarArea, toolBar_);
}

void MainWindow::buildRailAndViews() {
    rail_ = new Rail(this);
    addToolBar(Qt::LeftToolBarArea, rail_);
    stack_ = new QStackedWidget(this);
    stack_->setMinimumSize(320, 240);
    setCentralWidget(stack_);
    inspectorStack_ = new QStackedWidget(this);
    inspectorHeads_ = new QStackedWidget(this);
    inspectorHeads_->setFixedHeight(28);
    auto* group = new QActionGroup(this);
    const ViewServices context{document_, time_, runs_, actions_, settingsFile_, devices_};
    for (const ViewEntry& entry : viewEntries()) {
        const QString id = QString::fromLatin1(entry.id);
        QAction* action = actions_->action(QStringLiteral("go.") + id);
        action->setCheckable(true);
        group->addAction(action);
        rail_->addView(action, tr(entry.title), QString::fromLatin1(entry.icon));
        View* made = entry.make(context, stack_);
        views_.push_back(made);
        viewById_[id] = made;
        stack_->addWidget(made);
        if (QWidget* inspector = made->inspector()) {
            QWidget* head = made->inspectorHeader();
            inspectorPage_[id] = inspectorStack_->addWidget(inspector);
            inspectorHeads_->addWidget(head != nullptr ? head : new DockHeader(made->title(), inspectorHeads_));
        }
        connect(made, &View::openView, this, &MainWindow::openView);
        connect(made, &View::experimentWanted, this, [this](const QString& experiment) {
            const nlohmann::json spec = nlohmann::json::parse(experiment.toStdString(), nullptr, false);
            const engine::Workload* workload =
                spec.is_object() ? engine::findWorkload(spec.value("workload", "")) : nullptr;
            // The Run view says of a workload without a form how it is started.
            const QString target =
                workload != nullptr && !workload->formView.empty() ? textOf(workload->formView) : QStringLiteral("run");
            openView(target);
            view(target)->takeExperiment(experiment);
        });
        connect(made, &View::searchWanted, this, [this] {
            search_->setFocus(Qt::ShortcutFocusReason);
            search_->selectAll();
        });
        connect(made, &View::availabilityChanged, this, [this, made] {
            if (made == currentView()) {
                updateAvailability();
            }
        });
        connect(made, &View::noteWanted, this, [this](qint64 note) {
            drawerDock_->show();
            drawer_->editNote(note);
        });
        connect(made, &View::inspectorWanted, this, [this, made] {
            if (made == currentView() && inspectorPage_.contains(made->id())) {
                inspectorDock_->setVisible(made->wantsInspector());
            }
        });
        connect(made, &View::readoutChanged, this, [this, made](const QString& text) {
            if (made == currentView()) {
                status_->readout()->setText(text);
            }
        });
        connect(made, &View::priced, this, [this, made](const QString& text) {
            if (made == currentView()) {
                status_->priced()->setText(text);
            }
        });
    }
}

void MainWindow::buildDocks() {
    setDockNestingEnabled(true);
    setCorner(Qt::TopRightCorner, Qt::RightDockWidgetArea);
    setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
    auto* inspectorFrame = new Surface(Surface::Fill::Panel, Surface::Left, this);
    auto* inspectorLayout = new QHBoxLayout(inspectorFrame);
    inspectorLayout->setContentsMargins(0, 0, 0, 0);
    inspectorLayout->addWidget(inspectorStack_);
    inspectorFrame_ = inspectorFrame;
    auto* head = new Surface(Surface::Fill::Panel, Surface::Bottom, this);
    head->setFixedHeight(28);
    auto* headLayout = new QHBoxLayout(head);
    headLayout->setContentsMargins(0, 0, 0, 0);
    headLayout->setSpacing(0);
    unfold_ = new QPushButton(head);
    unfold_->setFlat(true);
    unfold_->setFixedWidth(28);
    setControlHeight(unfold_, 24);
    unfold_->hide();
    connect(unfold_, &QPushButton::clicked, this, [this] { foldInspector(!inspectorFolded_); });
    headLayout->addWidget(unfold_);
    headLayout->addWidget(inspectorHeads_, 1);
    inspectorDock_ = makeDock(QStringLiteral("inspector"), tr("Inspector"), inspectorFrame, head, this);
    addDockWidget(Qt::RightDockWidgetArea, inspectorDock_);
    drawer_ = new Drawer({document_, time_, runs_, actions_}, this);
    drawerDock_ = makeDock(QStringLiteral("drawer"), tr("Drawer"), drawer_, new QWidget(this), this);
    addDockWidget(Qt::BottomDockWidgetArea, drawerDock_);
    auto* list = new QListView(this);
    list->setFrameShape(QFrame::NoFrame);
    list->setAccessibleName(tr("Runs"));
    auto* model = new FlatTreeModel(list);
    list->setModel(model);
    const auto fill = [this, model, list] {
        auto table = std::make_shared<FlatTree>();
        table->columns = {{tr("Run"), false}};
        for (auto run = document_->runs().rbegin(); run != document_->runs().rend(); ++run) {
            FlatNode node;
            node.key = static_cast<quint64>(run->id);
            node.cells = {FlatCell(QStringLiteral("%1  %2").arg(run->id).arg(runTitle(*run)))};
            table->nodes.push_back(std::move(node));
        }
        model->setTree(std::move(table));
        list->setCurrentIndex(model->indexOfKey(static_cast<quint64>(document_->runA())));
    };
    connect(document_, &SessionDocument::runsChanged, list, fill);
    connect(document_, &SessionDocument::selectionChanged, list, fill);
    connect(list, &QListView::activated, this, [this, model](const QModelIndex& index) {
        if (const FlatNode* node = model->node(index)) {
            document_->setRunA(static_cast<sessions::RunId>(node->key));
        }
    });
    runsDock_ = makeDock(QStringLiteral("runs"), tr("Runs"), list, new DockHeader(tr("Runs"), this), this);
    addDockWidget(Qt::LeftDockWidgetArea, runsDock_);
    const std::pair<const char*, QDockWidget*> toggles[] = {
        {"panel.inspector", inspectorDock_}, {"panel.drawer", drawerDock_}, {"panel.runs", runsDock_}};
    for (const auto& [id, dock] : toggles) {
        QAction* action = actions_->action(QString::fromLatin1(id));
        connect(dock->toggleViewAction(), &QAction::toggled, action, &QAction::setChecked);
    }
}

} // namespace vitrine::ui
