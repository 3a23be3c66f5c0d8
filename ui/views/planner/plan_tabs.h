// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// An inspector of several parts where it lies below the page: one part at a time, chosen by segments in its head. At
// the right of the page all parts stand under each other.

#include <QObject>
#include <QString>
#include <utility>
#include <vector>

class QWidget;

namespace vitrine::ui {

class DockHeader;
class SegmentedControl;

class PlanTabs final : public QObject {
    Q_OBJECT

public:
    /// `parts` lie in `panel`; the head belongs to it and owns this. Without segments its title is the first part's.
    PlanTabs(std::vector<std::pair<QString, QWidget*>> parts, QWidget* panel, DockHeader* header);

    SegmentedControl* segments() const { return segments_; }
    void setTitle(const QString& title); ///< of the head without segments

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void update();

    std::vector<std::pair<QString, QWidget*>> parts_;
    QString title_;
    DockHeader* header_;
    SegmentedControl* segments_;
    bool below_ = false; ///< the panel is as wide as the page above it
};

} // namespace vitrine::ui
