// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// vitrine-gui [FILE...] [--render DIR [--size WxH] [--views ID,...]]

#include <QApplication>
#include <QCommandLineParser>
#include <QStandardPaths>
#include <csignal>
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

struct Options {
    QCommandLineOption help, version;
    QCommandLineOption render{QStringLiteral("render"), QObject::tr("Write a PNG of every view to DIR and exit"),
                              QStringLiteral("DIR")};
    QCommandLineOption size{QStringLiteral("size"), QObject::tr("Window of the PNGs; at least 900x600"),
                            QStringLiteral("WxH"), QStringLiteral("1440x900")};
    QCommandLineOption views{QStringLiteral("views"), QObject::tr("PNGs of these views only, as batching,kv-cache"),
                             QStringLiteral("ID,...")};

    explicit Options(QCommandLineParser& parser) : help(parser.addHelpOption()), version(parser.addVersionOption()) {
        parser.setApplicationDescription(QObject::tr("Opens session files (.vitrine) and model folders."));
        parser.addPositionalArgument(QStringLiteral("FILE"), QObject::tr("Session file or model folder"),
                                     QStringLiteral("[FILE...]"));
        parser.addOptions({render, size, views});
    }
};

QStringList wordsOf(int argc, char** argv) {
    QStringList words;
    for (int i = 0; i < argc; ++i) {
        words << QString::fromLocal8Bit(argv[i]);
    }
    return words;
}

/// Whether the command line asks for text alone, which needs no display.
bool asksForText(QCommandLineParser& parser, const Options& options, const QStringList& words) {
    parser.parse(words);
    return parser.isSet(options.help) || parser.isSet(options.version) || parser.isSet(QStringLiteral("help-all"));
}

int runProgram(int argc, char** argv) {
    QCoreApplication::setApplicationName(QStringLiteral("vitrine"));
    QCoreApplication::setApplicationVersion(QStringLiteral(VITRINE_VERSION));
    QCommandLineParser parser;
    const Options options(parser);
    if (asksForText(parser, options, wordsOf(argc, argv))) {
        const QCoreApplication app(argc, argv);
        parser.process(app);
        return 0;
    }
    const bool scaled = qEnvironmentVariableIsSet("QT_SCALE_FACTOR");
    if (asksToRender(argc, argv)) {
        qputenv("QT_QPA_PLATFORM", "offscreen"); // pictures need no display
    }
    QApplication app(argc, argv);
    QApplication::setApplicationDisplayName(QStringLiteral("Vitrine"));
    QApplication::setDesktopFileName(QStringLiteral("vitrine"));

    parser.process(app);

    const QStringList files = parser.positionalArguments();
    if (parser.isSet(options.render)) {
        const QSize window = vitrine::app::windowSize(parser.value(options.size));
        if (window.isEmpty()) {
            std::fprintf(stderr, "vitrine-gui: error: --size: %s is no size from 900x600 to 8192x8192\n",
                         qPrintable(parser.value(options.size)));
            return 2;
        }
        vitrine::ui::Theme::instance().install();
        const QStringList wanted = parser.value(options.views).split(QLatin1Char(','), Qt::SkipEmptyParts);
        return scaled ? vitrine::app::renderSession(files, parser.value(options.render), window, wanted)
                      : vitrine::app::renderAllRatios(files, parser.value(options.render), parser.value(options.size),
                                                      wanted);
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
    std::signal(SIGXFSZ, SIG_IGN); // a file that reaches its largest size is an error, not our end
    try {
        return runProgram(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "vitrine-gui: error: %s\n", error.what());
        return 1;
    }
}
