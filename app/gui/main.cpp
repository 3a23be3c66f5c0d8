// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// vitrine-gui [FILE...] [--render DIR [--size WxH] [--views ID,...]]

#include <QApplication>
#include <QCommandLineParser>
#include <QStandardPaths>
#include <cstdio>
#include <exception>

#include "app/gui/host_run_controller.h"
#include "app/gui/machine_device_feed.h"
#include "app/gui/render.h"
#include "ui/models/common/run_controller.h"
#include "ui/views/shell/main_window.h"
#include "ui/widgets/base/theme.h"

namespace {

bool asksToRender(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        if (QByteArray(argv[i]).startsWith("--render")) {
            return true;
        }
    }
    return false;
}

int runProgram(int argc, char** argv) {
    const bool scaled = qEnvironmentVariableIsSet("QT_SCALE_FACTOR");
    if (asksToRender(argc, argv)) {
        qputenv("QT_QPA_PLATFORM", "offscreen"); // pictures need no display
    }
    QApplication app(argc, argv);
    QApplication::setApplicationName(QStringLiteral("vitrine"));
    QApplication::setApplicationDisplayName(QStringLiteral("Vitrine"));
    QApplication::setApplicationVersion(QStringLiteral(VITRINE_VERSION));
    QApplication::setDesktopFileName(QStringLiteral("vitrine"));

    QCommandLineParser parser;
    parser.setApplicationDescription(QObject::tr("Opens session files (.vitrine) and model folders."));
    parser.addHelpOption();
    parser.addVersionOption();
    parser.addPositionalArgument(QStringLiteral("FILE"), QObject::tr("Session file or model folder"),
                                 QStringLiteral("[FILE...]"));
    const QCommandLineOption render(QStringLiteral("render"), QObject::tr("Write a PNG of every view to DIR and exit"),
                                    QStringLiteral("DIR"));
    parser.addOption(render);
    const QCommandLineOption size(QStringLiteral("size"), QObject::tr("Window of the PNGs; at least 900x600"),
                                  QStringLiteral("WxH"), QStringLiteral("1440x900"));
    parser.addOption(size);
    const QCommandLineOption views(QStringLiteral("views"),
                                   QObject::tr("PNGs of these views only, as batching,kv-cache"),
                                   QStringLiteral("ID,..."));
    parser.addOption(views);
    parser.process(app);

    const QStringList files = parser.positionalArguments();
    if (parser.isSet(render)) {
        const QSize window = vitrine::app::windowSize(parser.value(size));
        if (window.isEmpty()) {
            std::fprintf(stderr, "vitrine-gui: error: --size: %s is no size from 900x600 to 8192x8192\n",
                         qPrintable(parser.value(size)));
            return 2;
        }
        vitrine::ui::Theme::instance().install();
        const QStringList wanted = parser.value(views).split(QLatin1Char(','), Qt::SkipEmptyParts);
        return scaled ? vitrine::app::renderSession(files, parser.value(render), window, wanted)
                      : vitrine::app::renderAllRatios(files, parser.value(render), parser.value(size), wanted);
    }

    vitrine::ui::Theme::instance().install();
    vitrine::app::HostRunController runs;
    const QString settings =
        QStandardPaths::writableLocation(QStandardPaths::AppConfigLocation) + QStringLiteral("/vitrine.ini");
    vitrine::app::MachineDeviceFeed devices;
    vitrine::ui::MainWindow window(&runs, settings, nullptr, &devices);
    for (const QString& file : files) {
        window.openFile(file);
    }
    window.show();
    return QApplication::exec();
}

} // namespace

int main(int argc, char** argv) {
    try {
        return runProgram(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "vitrine-gui: error: %s\n", error.what());
        return 1;
    }
}
