// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The status bar of the main window: the readout of the view at the left; at the right how far reading is, what the
// view says of its price, and what is known of run A: its events, its losses, and whether it is saved.

#include <QStatusBar>

#include "ui/models/session/session_document.h"
#include "ui/widgets/base/controls.h"

class QProgressBar;
class QPushButton;

namespace vitrine::ui {

class StatusRow final : public QStatusBar {
    Q_OBJECT

public:
    /// The document outlives the row, which shows the progress of its reading by itself.
    explicit StatusRow(SessionDocument* document, QWidget* parent = nullptr);

    TextLabel* readout() const { return readout_; }
    TextLabel* priced() const { return priced_; }
    TextLabel* saved() const { return saved_; }
    TextLabel* losses() const { return losses_; }
    /// Shows run A as it is now.
    void refresh();
    bool reading() const; ///< a progress is shown, which Esc stops

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    void showProgress(const QString& what, quint64 done, quint64 total);

    SessionDocument* document_;
    TextLabel *readout_, *events_, *losses_, *saved_, *priced_, *progressText_;
    QProgressBar* progressBar_;
    QPushButton* progressStop_;
};

} // namespace vitrine::ui
