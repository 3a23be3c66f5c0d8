// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The docks around the view: the inspector, the drawer and the list of runs. Each view has a layout of its own, which
// is kept in the settings. In a narrow window the inspector lies below the view, where it can be folded to its head.

#include <QMainWindow>
#include <map>

#include "ui/widgets/base/view.h"

class QPushButton;
class QStackedWidget;

namespace vitrine::ui {

class Drawer;

class WindowDocks final : public QObject {
    Q_OBJECT

public:
    /// The docks become children of `window`. `settingsFile` empty keeps nothing.
    WindowDocks(const ViewServices& context, const QString& settingsFile, QMainWindow* window);

    /// Takes the inspector of a view, if it has one.
    void addView(View* view);
    /// Lays the docks out for a view that was added: as it was left, else in the way of a first start.
    void show(View* view);
    /// Keeps how the docks lie now as the layout of this view.
    void keepLayout(const View* view) const;
    void forgetLayouts();
    /// A window of less width or more of it: both have layouts of their own.
    void setNarrow(bool narrow);
    /// Shows the inspector or hides it, as the view wants.
    void followView(const View* view);

    void toggleInspector();
    void toggleDrawer();
    void toggleRuns();
    /// Opens the drawer and gives it.
    Drawer* openDrawer();
    Drawer* drawer() const { return drawer_; }

    QList<QWidget*> stops() const;      ///< where F6 stops: the docks that are open
    QList<QWidget*> focusOrder() const; ///< all parts, as Tab passes through them

private:
    QWidget* makeInspectorHead();
    QWidget* makeRuns(SessionDocument* document);
    QDockWidget* makeDock(const QString& name, const QString& title, QWidget* content, QWidget* head);
    QString layoutKey(const View* view) const;
    bool hasInspector(const View* view) const;
    void restore();
    void layOut();
    void foldInspector(bool folded);
    void sizeInspector(); ///< to what the shown view wants, beside it

    QMainWindow* window_;
    QString settingsFile_;
    View* shown_ = nullptr;
    const View* sizedFor_ = nullptr;   ///< the view that the inspector has its width from
    std::map<const View*, int> pages_; ///< of the inspector's stacks
    QStackedWidget *inspectors_, *heads_;
    QWidget* frame_;      ///< of the inspector, below its head
    QPushButton* unfold_; ///< on the head of the inspector where it lies below the view
    Drawer* drawer_;
    QDockWidget *inspectorDock_, *drawerDock_, *runsDock_;
    bool narrow_ = false, folded_ = false;
};

} // namespace vitrine::ui
