// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Facts about the pinned allocation, as a form: text in accent is a link.

#include <QWidget>
#include <vector>

#include "profiler/timeline/timeline_rows.h"
#include "ui/models/memory/allocation_links.h"
#include "ui/models/session/session_document.h"
#include "ui/widgets/base/controls.h"

class QFormLayout;

namespace vitrine::ui {

class PinnedPanel final : public QWidget {
    Q_OBJECT

public:
    explicit PinnedPanel(QWidget* parent);
    void show(const profiler::RunTimeline& timeline, std::size_t row);
    void clear();
    QString asText() const; ///< what "Copy as text" copies
    /// Made, used, freed of what is shown; empty when nothing is.
    const std::vector<AllocationLink>& links() const { return links_; }
    /// The buttons that stand for links, top to bottom.
    std::vector<QAbstractButton*> linkButtons() const { return buttonsOfLinks_; }

signals:
    void closed();
    void scopeWanted(quint64 scope);
    void allocationWanted(quint64 allocation);
    void onlyWanted();

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    struct Part {
        QString text;
        TextColor color = TextColor::Text1;
        bool mono = false;
        quint64 scope = 0, allocation = 0; ///< one of them: the part is a link
        QString tip = {};
    };
    void addRow(const QString& name, const std::vector<Part>& parts);
    void addWhere(const profiler::RunTimeline& timeline, const profiler::AllocationRow& row);
    void addLinks(const profiler::RunTimeline& timeline, const profiler::AllocationRow& row, std::size_t index);
    DockHeader* header_;
    QWidget* form_;
    QFormLayout* rows_;
    QWidget* buttons_;
    QWidget* goButton_;
    TextLabel* hint_;
    struct Shown {
        const void* timeline = nullptr;
        std::uint64_t events = 0, allocation = 0;
        friend bool operator==(const Shown&, const Shown&) = default;
    };
    Shown shown_;
    quint64 scope_ = 0;
    QStringList text_;
    std::vector<AllocationLink> links_;
    std::vector<QAbstractButton*> buttonsOfLinks_;
};

} // namespace vitrine::ui
